// Package deviceplugin offers this node's devices to its kubelet: one resource
// akri.sh/INSTANCE a device, one id a slot.
//
// Read node.go (what holds everything together: it feeds package slots and carries
// out what that decides), service.go (what the kubelet asks and is told),
// response.go (what a container gets), lifecycle.go (a server a resource, from
// its socket to its end), registrar.go (the two roads by which the kubelet finds
// it) and socket.go.
//
// Always: a call that names an id absent from the list last sent is refused; each
// container request has exactly one response; a socket name is used once; one
// road is active at a time, for with two the kubelet mixes the lists.
// Never: a lock held over a call, an id dropped from a list that the machine of
// package slots has not let go.
//
// # The end
//
// When the agent is told to stop it sends a last list in which everything is
// unhealthy, and then ends its servers. The kubelet gives an unhealthy id to no
// new container, as it does when the plugin is gone; running containers, and
// containers that restart in place, are left alone by either (run on kubelet
// 1.37). The difference is what people see: without that list the pods of a node
// whose agent is gone show a healthy device for ever. The agent's next start
// sends the ids as healthy again, so after an update of the agent the status of
// the pods has changed twice and no pod has noticed.
//
// # CDI
//
// Properties, mounts and device files are given to the container directly. No CDI
// specification is written, hence no CDI name is given: the container runtime
// refuses a container with a name it cannot resolve.
package deviceplugin
