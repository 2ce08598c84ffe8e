package observer

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

var errMalformed = errors.New("malformed pod")

// visitFields calls f for each field of a protobuf message that is a string, bytes
// or a message. It reports whether the message is well-formed.
func visitFields(message []byte, f func(number protowire.Number, value []byte)) bool {
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

// decodePod decodes a Pod of the Pods API, which is an encoded v1.Pod. It reads
// only the fields it needs, by their numbers in
// k8s.io/api/core/v1/generated.proto, which cannot change. Importing that package
// would double the agent's size.
func decodePod(message []byte) (podInfo, error) {
	var f podFacts
	whole := true
	sub := func(message []byte, g func(protowire.Number, []byte)) { whole = visitFields(message, g) && whole }
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
				case 18:
					f.claimed = decodeClaimed(value, sub)
				}
			})
		}
	})
	if !whole || f.uid == "" {
		return podInfo{}, errMalformed
	}
	return f.digest(), nil
}

type visitor = func(message []byte, f func(protowire.Number, []byte))

// decodeContainer reads a v1.Container: its name (1), its resources (8; limits 1 and
// requests 2, both maps of Quantity) and its restartPolicy (24), which tells a sidecar
// from other init containers. The numbers are those of k8s.io/api/core/v1.
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
		case 1:
			c.name = string(value)
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

// decodeClaimed decodes the mappings of a PodExtendedResourceClaimStatus.
func decodeClaimed(message []byte, sub visitor) map[request]bool {
	claimed := map[request]bool{}
	sub(message, func(number protowire.Number, value []byte) {
		if number != 1 {
			return
		}
		var r request
		sub(value, func(number protowire.Number, value []byte) {
			switch number {
			case 1:
				r.container = string(value)
			case 2:
				r.resource = string(value)
			}
		})
		claimed[r] = true
	})
	return claimed
}

func decodeState(message []byte, sub visitor) containerState {
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
