package witness

import (
	"errors"
	"maps"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/api/resource"

	v0 "akri.sh/akri/api/v0"
)

// Pod is what matters of a pod: which of our resources it asks for, and whether
// it has ended.
type Pod struct {
	UID, Namespace, Name string
	// Requests says how many of each of our resources the list must show: the sum
	// over containers and sidecars.
	Requests map[string]int
	// Hidden are resources of which a plain init container asks for more than the
	// containers and sidecars do. The list never shows the difference, and the
	// kubelet keeps it until the pod ends.
	Hidden map[string]bool
	// Ended: no container of the pod runs or will run again.
	Ended bool
}

// key is how the podresources list names a pod.
func (p Pod) key() string { return p.Namespace + "/" + p.Name }

// wants tells whether the pod asks for any of our resources.
func (p Pod) wants() bool { return len(p.Requests) > 0 || len(p.Hidden) > 0 }

// facts are read from a pod in either form; digest makes a Pod of them.
type facts struct {
	uid, namespace, name string
	deleting             bool
	phase                string
	containers, inits    []container
	statuses             []state // of the containers
	others               []state // of init and ephemeral containers
}

type container struct {
	limits, requests map[string]string
	sidecar          bool
}

type state int

const (
	waiting state = iota
	running
	terminated
)

func (f facts) digest() Pod {
	pod := Pod{UID: f.uid, Namespace: f.namespace, Name: f.name, Requests: map[string]int{}, Hidden: map[string]bool{}}
	plain := map[string]int{}
	for _, c := range append(f.inits, f.containers...) {
		for name, count := range c.ours() {
			pod.Requests[name] += count
		}
	}
	for _, c := range f.inits {
		if c.sidecar {
			continue
		}
		for name, count := range c.ours() {
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

// ended: the phase is final, or the pod is being deleted and its containers have
// stopped; and no status says that anything runs. A crash-looping pod has stopped
// containers too, and goes on.
func (f facts) ended() bool {
	stopped := len(f.statuses) > 0
	for _, s := range f.statuses {
		if s == running {
			return false
		}
		stopped = stopped && s == terminated
	}
	for _, s := range f.others {
		if s == running {
			return false
		}
	}
	return f.phase == "Succeeded" || f.phase == "Failed" || f.deleting && stopped
}

// ours returns how many of each of our resources a container asks for.
func (c container) ours() map[string]int {
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

var errMalformed = errors.New("malformed pod")

// fields calls f for each field of a protobuf message, with the value of those
// that are strings, bytes or messages. It reports whether the message is whole.
func fields(message []byte, f func(number protowire.Number, value []byte)) bool {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return false
		}
		message = message[n:]
		if kind == protowire.BytesType {
			value, n := protowire.ConsumeBytes(message)
			if n < 0 {
				return false
			}
			f(number, value)
			message = message[n:]
			continue
		}
		n = protowire.ConsumeFieldValue(number, kind, message)
		if n < 0 {
			return false
		}
		message = message[n:]
	}
	return true
}

// decodePod reads the pod that the Pods API hands out as the bytes of a v1.Pod.
// Only the few fields needed are read, by their numbers in
// k8s.io/api/core/v1/generated.proto, which cannot change; importing that package
// would double the agent's size.
func decodePod(message []byte) (Pod, error) {
	var f facts
	whole := true
	sub := func(message []byte, g func(protowire.Number, []byte)) { whole = fields(message, g) && whole }
	sub(message, func(number protowire.Number, value []byte) {
		switch number {
		case 1: // metadata
			sub(value, func(number protowire.Number, value []byte) {
				switch number {
				case 1:
					f.name = string(value)
				case 3:
					f.namespace = string(value)
				case 5:
					f.uid = string(value)
				case 9:
					f.deleting = true
				}
			})
		case 2: // spec
			sub(value, func(number protowire.Number, value []byte) {
				switch number {
				case 2:
					f.containers = append(f.containers, decodeContainer(value, sub))
				case 20:
					f.inits = append(f.inits, decodeContainer(value, sub))
				}
			})
		case 3: // status
			sub(value, func(number protowire.Number, value []byte) {
				switch number {
				case 1:
					f.phase = string(value)
				case 8:
					f.statuses = append(f.statuses, decodeState(value, sub))
				case 10, 13:
					f.others = append(f.others, decodeState(value, sub))
				}
			})
		}
	})
	if !whole || f.uid == "" {
		return Pod{}, errMalformed
	}
	return f.digest(), nil
}

type visitor = func(message []byte, f func(protowire.Number, []byte))

func decodeContainer(message []byte, sub visitor) container {
	c := container{limits: map[string]string{}, requests: map[string]string{}}
	quantities := func(entry []byte, into map[string]string) {
		var name, quantity string
		sub(entry, func(number protowire.Number, value []byte) {
			switch number {
			case 1:
				name = string(value)
			case 2:
				sub(value, func(number protowire.Number, value []byte) {
					if number == 1 {
						quantity = string(value)
					}
				})
			}
		})
		into[name] = quantity
	}
	sub(message, func(number protowire.Number, value []byte) {
		switch number {
		case 8: // resources
			sub(value, func(number protowire.Number, value []byte) {
				switch number {
				case 1:
					quantities(value, c.limits)
				case 2:
					quantities(value, c.requests)
				}
			})
		case 24:
			c.sidecar = string(value) == "Always"
		}
	})
	return c
}

func decodeState(message []byte, sub visitor) state {
	s := waiting
	sub(message, func(number protowire.Number, value []byte) {
		if number != 2 {
			return
		}
		sub(value, func(number protowire.Number, _ []byte) {
			switch number {
			case 2:
				s = running
			case 3:
				s = terminated
			}
		})
	})
	return s
}
