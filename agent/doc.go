// Package agent runs on each node. It finds devices, publishes them as Instances,
// and offers them to the kubelet.
//
// It has two halves, with [akri.sh/akri/agent/device] as the seam. Everything that
// both need of the API server is in [akri.sh/akri/agent/instances].
//
// The discovering half, in the order of a device's way:
//   - discover/registry: discovery handlers register.
//   - discover/properties: the Secrets and ConfigMaps a request refers to.
//   - discover/streams: handlers report devices.
//   - discover/publish: devices become Instances.
//
// The serving half, in the order of a container's way:
//   - serve/kubelet: connects a resource to the kubelet and reads its pods.
//   - serve/deviceplugin: answers the kubelet, and carries out the commands of slots.
//   - serve/slots: decides who gets a slot (pure).
//   - serve/claims: writes owners of slots into Instances.
//   - serve/observer: observes which slots containers still have.
//
// This package wires the parts and owns their goroutines. Start with agent.go,
// then reconcile.go, which takes one Configuration through the discovering half.
//
// Always: an agent that starts changes no Instance before its handlers have
// reported; without the API server it waits. Never: a package of k8s.io/api other
// than core/v1 is linked in, which a test checks, because the agent runs on small
// machines.
package agent
