package observer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"akri.sh/akri/agent/core"
	"akri.sh/akri/agent/informer"
	"akri.sh/akri/agent/serve/kubelet"
)

const (
	// vanishHold is how long a Pod that vanished before it terminated counts as running,
	// after the kubelet's list does not show it any more. The kubelet kills the container
	// of a force-deleted Pod after 2 s (3.3 s was measured), but the Pod disappears from
	// the API server and from the list at once.
	vanishHold = 5 * time.Second
	// listTimeout bounds a list of the Pods: an API server that does not respond must not
	// stop the observations.
	listTimeout = 5 * time.Second
)

// nodePods has the Pods of the node, as a watch of the API server shows them.
type nodePods struct {
	client   rest.Interface // of the core API
	selector fields.Selector
	informer *informer.Informer
	changed  chan struct{} // see [Observer.Changed]

	// pods are not read from the informer: there, a Pod that was deleted is missing before
	// the event of its deletion is handled.
	mu       sync.Mutex
	pods     map[types.UID]podInfo
	vanished map[types.UID]vanishedPod // deleted before they terminated
}

// vanishedPod is a Pod that counts as running until a time; that is zero while the kubelet
// lists the Pod.
type vanishedPod struct {
	pod   podInfo
	until time.Time
}

func newNodePods(client rest.Interface, node string, attempted func(context.Context, error)) *nodePods {
	n := &nodePods{
		client: client, selector: fields.OneTermEqualSelector("spec.nodeName", node), changed: make(chan struct{}, 1),
		pods: map[types.UID]podInfo{}, vanished: map[types.UID]vanishedPod{},
	}
	n.informer = informer.Core(client, "pods", metav1.NamespaceAll, n.selector, nil, attempted, &corev1.Pod{}, readPod,
		informer.Events(func(_, pod *podInfo) { n.put(*pod) }, func(pod *podInfo) { n.remove(*pod) }))
	return n
}

// put records a Pod that exists.
func (n *nodePods) put(pod podInfo) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before, known := n.pods[pod.UID]
	n.pods[pod.UID] = pod
	if pod.wantsDevices() && (!known || before.Terminated != pod.Terminated) {
		n.notify()
	}
}

// remove records the deletion of a Pod, whose last status shows whether it terminated.
func (n *nodePods) remove(pod podInfo) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.pods, pod.UID)
	if !pod.wantsDevices() {
		return
	}
	if !pod.Terminated {
		pod.Waiting = false // the kubelet may have admitted it just before
		n.vanished[pod.UID] = vanishedPod{pod: pod}
	}
	n.notify()
}

func (n *nodePods) notify() {
	select {
	case n.changed <- struct{}{}:
	default:
	}
}

// at returns the Pods that count as running, or have terminated, after a list of the
// kubelet: those that the watch shows, and those that vanished and that the kubelet has
// listed within vanishHold.
func (n *nodePods) at(listing kubelet.Listing, now time.Time) []podInfo {
	n.mu.Lock()
	defer n.mu.Unlock()
	pods := slices.AppendSeq(make([]podInfo, 0, len(n.pods)), maps.Values(n.pods))
	listed := map[string]int{}
	for _, holding := range listing {
		listed[holding.Namespace+"/"+holding.Name]++
	}
	for _, pod := range pods {
		if !pod.Waiting && !pod.Terminated {
			listed[pod.key()]--
		}
	}
	for uid, v := range n.vanished {
		switch {
		case listed[v.pod.key()] > 0: // by itself, not by its successor of the same name
			v.until = time.Time{}
		case v.until.IsZero():
			v.until = now.Add(vanishHold)
		case !now.Before(v.until):
			delete(n.vanished, uid)
			continue
		}
		n.vanished[uid] = v
		pods = append(pods, v.pod)
	}
	return pods
}

// shows reports whether some Pods include all that exist. It reads only their metadata, for
// its size. The request names no resourceVersion, so the read is consistent. It is not paged:
// an API server that serves a list from its cache reads pages from etcd, the Pods of all nodes
// for each.
func (n *nodePods) shows(ctx context.Context, pods []podInfo) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	list := &metav1.PartialObjectMetadataList{}
	err := n.client.Get().Resource("pods").Param("fieldSelector", n.selector.String()).SetHeader("Accept", core.Metadata).Do(ctx).Into(list)
	if err != nil {
		return false, fmt.Errorf("list the Pods of the node: %w", err)
	}
	known := map[types.UID]bool{}
	for _, pod := range pods {
		known[pod.UID] = true
	}
	return !slices.ContainsFunc(list.Items, func(pod metav1.PartialObjectMetadata) bool { return !known[pod.UID] }), nil
}
