// Package agent runs on each node. It finds devices, publishes them as Instances,
// and offers them to the kubelet.
//
// It has two halves, connected by [akri.sh/akri/agent/device]. Both read the
// Instances from [akri.sh/akri/agent/instances].
//
// The discovering half, in the order in which a device passes through it:
//   - discover/registry: discovery handlers register.
//   - discover/embedded: discovery handlers in this process, which register, too.
//   - discover/properties: the Secrets and ConfigMaps a request refers to.
//   - discover/streams: handlers report devices.
//   - discover/publish: devices become Instances.
//
// The serving half, in the order in which a container passes through it:
//   - serve/kubelet: connects a resource to the kubelet and reads its Pods.
//   - serve/deviceplugin: answers the kubelet, and carries out the commands of slots.
//   - serve/slots: decides which container gets a slot (pure).
//   - serve/claims: writes owners of slots into Instances.
//   - serve/observer: observes which slots containers still have.
//
// This package connects the components and owns their goroutines. Start with
// agent.go, then reconcile.go, which takes one Configuration through the discovering
// half.
//
// Always: an agent that starts changes no Instance before its handlers have
// reported; without the API server it waits. Never: a package of k8s.io/api other
// than core/v1, because the agent runs on small machines (a test checks this).
package agent
