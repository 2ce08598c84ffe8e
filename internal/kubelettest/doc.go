// Package kubelettest is a stub of the kubelet for device plugins: the device manager
// with both registration paths, admission of pods with one Allocate per container,
// the podresources list and the Pods API, on real Unix sockets.
//
// It behaves as kubelet 1.37.1 was observed to, including its pitfalls: devices of
// plain init containers are offered again to later containers of the pod and are
// missing from the list; a stream that ended is not reopened; sockets in
// device-plugins are removed at each start; for some time after a start, the list is
// empty and the Pods API refuses requests; a force-deleted pod leaves the list
// while its container runs; an id that leaves a plugin's list between its choice and
// its use crashes the kubelet (the stub only counts it, see [Kubelet.Crashes]).
//
// Always: real sockets and protocols. Never: imported by production code.
//
// Read kubelet.go, plugins.go, admission.go, then podresources.go.
package kubelettest
