package observer

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	v0 "akri.sh/akri/api/v0"
)

// podInfo holds what the accounting needs to know about a pod: its requests for
// Akri's resources, and whether it has terminated.
type podInfo struct {
	UID, Namespace, Name string
	// Requests is how many devices of each resource the list must show: the sum
	// over containers and sidecars.
	Requests map[string]int
	// Hidden are the resources that have ids which only a plain init container of
	// the Pod got. The list never shows them, and the kubelet keeps them until the
	// Pod ends.
	Hidden map[string]bool
	// Terminated means that no container of the Pod runs or will run again.
	Terminated bool
	// Waiting means that the kubelet has not reported that it has admitted the Pod. Only
	// the API server shows such Pods.
	Waiting bool
}

// key returns the Pod's name as the podresources list shows it.
func (p podInfo) key() string { return p.Namespace + "/" + p.Name }

// wantsDevices reports whether the Pod requests any of Akri's resources.
func (p podInfo) wantsDevices() bool { return len(p.Requests) > 0 || len(p.Hidden) > 0 }

// satisfiedBy reports whether these ids, by resource, are as many as the Pod requests.
func (p podInfo) satisfiedBy(ids map[string][]string) bool {
	for name, count := range p.Requests {
		if len(ids[name]) < count {
			return false
		}
	}
	return true
}

// podFacts are the fields read from either form of a Pod; digest turns them into
// a podInfo.
type podFacts struct {
	uid, namespace, name string
	deleting, waiting    bool
	phase                string
	containers, inits    []container
	statuses             []containerState // of the containers
	others               []containerState // of init and ephemeral containers
	// claimed are the requests that are served by DRA instead of a device plugin
	// (status.extendedResourceClaimStatus).
	claimed map[request]bool
}

// request names a resource that a container requests.
type request struct{ container, resource string }

type container struct {
	name             string
	limits, requests map[string]string
	sidecar          bool
}

type containerState int

const (
	waiting containerState = iota
	running
	terminated
)

func (f podFacts) digest() podInfo {
	pod := podInfo{UID: f.uid, Namespace: f.namespace, Name: f.name, Terminated: f.terminated(), Waiting: f.waiting}
	reusable := map[string]int{}
	for _, c := range f.inits {
		for name, count := range f.deviceCounts(c) {
			if c.sidecar {
				pod.request(name, count, reusable)
			} else {
				reusable[name] = max(reusable[name], count)
			}
		}
	}
	for _, c := range f.containers {
		for name, count := range f.deviceCounts(c) {
			pod.request(name, count, reusable)
		}
	}
	for name, count := range reusable {
		if count > 0 {
			if pod.Hidden == nil {
				pod.Hidden = map[string]bool{}
			}
			pod.Hidden[name] = true
		}
	}
	return pod
}

// request adds the devices of a container or a sidecar. As in the kubelet
// (devicesToReuse in pkg/kubelet/cm/devicemanager), it first gets ids of the plain
// init containers before it, and these are not given to a third container.
func (p *podInfo) request(name string, count int, reusable map[string]int) {
	if p.Requests == nil {
		p.Requests = map[string]int{}
	}
	p.Requests[name] += count
	reusable[name] -= min(count, reusable[name])
}

// terminated reports whether the phase is final, or the Pod is being deleted and its
// containers have terminated; in both cases no status may show a running
// container. A crash-looping Pod has terminated containers too, but they restart.
func (f podFacts) terminated() bool {
	stopped := len(f.statuses) > 0
	for _, s := range f.statuses {
		if s == running {
			return false
		}
		stopped = stopped && s == terminated
	}
	if slices.Contains(f.others, running) {
		return false
	}
	return f.phase == "Succeeded" || f.phase == "Failed" || f.deleting && stopped
}

// deviceCounts returns how many devices of each resource a container requests from
// the device plugin.
func (f podFacts) deviceCounts(c container) map[string]int {
	var counts map[string]int
	for _, list := range []map[string]string{c.requests, c.limits} {
		for name, quantity := range list {
			if !strings.HasPrefix(name, v0.Domain+"/") || f.claimed[request{c.name, name}] {
				continue
			}
			if q, err := resource.ParseQuantity(quantity); err == nil && q.Value() > 0 {
				if counts == nil {
					counts = map[string]int{}
				}
				counts[name] = int(q.Value())
			}
		}
	}
	return counts
}
