package claims

import (
	"encoding/json"
	"strings"

	v0 "akri.sh/akri/api/v0"
)

// operation is one step of a JSON Patch (RFC 6902). A nil value is sent as null:
// "test" of null passes on an absent key, which API servers since 1.31 were seen
// to do and 1.37 does.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

const usagePath = "/spec/deviceUsage"

// raw is deviceUsage as it stands in the object: a slot can be absent or "", and
// the map can be absent, which one patch must tell apart though they all mean
// free.
type raw struct {
	version string
	present bool
	usage   map[string]string
}

// change is what a patch does to its slots.
type change struct {
	slots  []string
	from   v0.Owner
	to     v0.Owner
	pinned bool // the patch applies to the version read only
}

// build returns the patch that makes a change, or nothing if the object is as
// wanted already. It reports false if a slot is owned by somebody else.
func (c change) build(object raw) (patch []byte, possible bool) {
	var operations []operation
	if c.pinned {
		operations = append(operations, operation{"test", "/metadata/resourceVersion", object.version})
	}
	tests := len(operations)
	added := map[string]string{}
	for _, slot := range c.slots {
		value, set := object.usage[slot]
		switch {
		case value == c.to.String():
			continue
		case value != c.from.String():
			return nil, false
		case !object.present:
			added[slot] = c.to.String()
		case !set:
			operations = append(operations, operation{"test", slotPath(slot), nil}, operation{"add", slotPath(slot), c.to.String()})
		default:
			operations = append(operations, operation{"test", slotPath(slot), value}, operation{"replace", slotPath(slot), c.to.String()})
		}
	}
	if len(added) > 0 {
		operations = append(operations, operation{"test", usagePath, nil}, operation{"add", usagePath, added})
	}
	if len(operations) == tests {
		return nil, true
	}
	patch, err := json.Marshal(operations)
	if err != nil {
		panic(err) // strings and maps of strings: cannot happen
	}
	return patch, true
}

// slotPath is the JSON Pointer (RFC 6901) of a slot.
func slotPath(slot string) string {
	return usagePath + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(slot)
}
