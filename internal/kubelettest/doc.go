// Package kubelettest is a stub of the kubelet for device plugins: the device manager
// with the plugin watcher, admission of Pods with one Allocate per container, and the
// podresources list, on real Unix sockets. An API server may know the Pods.
//
// It behaves as kubelet 1.37.1 was observed to, including its pitfalls:
//
//   - Devices of plain init containers are offered again to later containers of the
//     Pod, healthy or not, and are missing from the list.
//   - A Pod is in the list before its ids are.
//   - A stream that ended is not reopened. A socket name that is registered while it is
//     connected is lost until the kubelet restarts.
//   - If plugins_registry is removed and created again, its sockets are found only after
//     the next start.
//   - Sockets in device-plugins are removed at each start. For some time after it, the
//     list is empty.
//   - A force-deleted Pod leaves the list while its container runs, and its ids are
//     offered again at once.
//   - A list during an Allocate may make the kubelet give the same device to a second
//     container. The stub only counts such lists: see [Kubelet.Overlaps].
//   - An id that leaves a plugin's list between its choice and its use crashes the
//     kubelet. The stub counts that, and fails the test: see [Kubelet.Crashes].
//
// Always: real sockets and protocols. Never: imported by what is shipped; bench measures
// with it.
//
// Read kubelet.go, plugins.go, admission.go, podresources.go, then apiserver.go.
package kubelettest
