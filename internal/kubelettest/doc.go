// Package kubelettest is the part of a kubelet that device plugins meet: its
// device manager with both roads of registration, admission of pods with one
// Allocate a container, the podresources list and the Pods API, on real Unix
// sockets.
//
// It behaves as kubelet 1.37.1 was seen to, its traps included: devices of plain
// init containers are offered again to later containers of the pod and are
// missing from the list; a stream that ended is not opened again; sockets in
// device-plugins are wiped at each start; the list is empty, and the Pods API
// refuses to answer, for a moment after a start; a force-deleted pod leaves the
// list while its container runs; an id that leaves a plugin's list between its
// choice and its use kills the kubelet (here it is counted, see
// [Kubelet.Crashes]).
//
// Read kubelet.go, plugins.go, admission.go, then podresources.go.
package kubelettest
