package observer

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	v0 "akri.sh/akri/api/v0"
)

// podInfo holds what the accounting needs to know about a pod: its requests for
// Akri's resources, and whether it has ended.
type podInfo struct {
	UID, Namespace, Name string
	// Requests is how many devices of each resource the list must show: the sum
	// over containers and sidecars.
	Requests map[string]int
	// Hidden are the resources for which a plain init container requests more
	// devices than the containers and sidecars do. The list never shows the
	// difference, and the kubelet keeps it until the pod ends.
	Hidden map[string]bool
	// Ended means that no container of the pod runs or will run again.
	Ended bool
}

// key returns the pod's name as the podresources list shows it.
func (p podInfo) key() string { return p.Namespace + "/" + p.Name }

// wantsDevices reports whether the pod requests any of Akri's resources.
func (p podInfo) wantsDevices() bool { return len(p.Requests) > 0 || len(p.Hidden) > 0 }

// podFacts are the fields read from either form of a pod; digest turns them into
// a podInfo.
type podFacts struct {
	uid, namespace, name string
	deleting             bool
	phase                string
	containers, inits    []container
	statuses             []containerState // of the containers
	others               []containerState // of init and ephemeral containers
}

type container struct {
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
	pod := podInfo{UID: f.uid, Namespace: f.namespace, Name: f.name, Requests: map[string]int{}, Hidden: map[string]bool{}}
	plain := map[string]int{}
	for _, c := range append(f.inits, f.containers...) {
		for name, count := range c.deviceCounts() {
			pod.Requests[name] += count
		}
	}
	for _, c := range f.inits {
		if c.sidecar {
			continue
		}
		for name, count := range c.deviceCounts() {
			pod.Requests[name] -= count
			plain[name] = max(plain[name], count)
		}
	}
	for name, count := range plain {
		if count > pod.Requests[name] {
			pod.Hidden[name] = true
		}
	}
	maps.DeleteFunc(pod.Requests, func(_ string, count int) bool { return count == 0 })
	pod.Ended = f.ended()
	return pod
}

// ended reports whether the phase is final, or the pod is being deleted and its
// containers have terminated; in both cases no status may show a running
// container. A crash-looping pod has terminated containers too, but they restart.
func (f podFacts) ended() bool {
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

// deviceCounts returns how many devices of each resource a container requests.
func (c container) deviceCounts() map[string]int {
	counts := map[string]int{}
	for _, list := range []map[string]string{c.requests, c.limits} {
		for name, quantity := range list {
			if !strings.HasPrefix(name, v0.Domain+"/") {
				continue
			}
			if q, err := resource.ParseQuantity(quantity); err == nil && q.Value() > 0 {
				counts[name] = int(q.Value())
			}
		}
	}
	return counts
}
