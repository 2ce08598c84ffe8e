// Package device is the interface between the two halves of the agent. The
// discovering half reports which devices this node can reach, and the serving half
// offers them to the kubelet.
//
// Always: data only. Never: behaviour.
package device
