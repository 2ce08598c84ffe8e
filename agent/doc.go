// Package agent is one node's part: discovery handlers in, Instances and kubelet
// resources out.
//
// One device, in order: a handler registers ([akri.sh/akri/agent/discover/registry]); its
// message arrives on a stream ([akri.sh/akri/agent/discover/streams]); the device becomes
// an Instance ([akri.sh/akri/agent/discover/publish]) and is handed to the half that
// serves the kubelet through [akri.sh/akri/agent/device]. This package wires the
// parts and owns their goroutines; reconcile.go is the loop that takes one
// Configuration through all of them.
//
// Always: an agent that starts changes no Instance until it has heard better;
// without the API server it waits and goes on. Never: anything of k8s.io/api but
// core/v1 is linked in, which a test guards: the agent runs on small machines.
package agent
