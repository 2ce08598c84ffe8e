package deviceplugin

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/jsonpatch"
)

// patched returns an Instance as a JSON Patch changes it, and whether the patch applies.
func patched(before *v0.Instance, patch []jsonpatch.Operation) (*v0.Instance, bool) {
	text, err := json.Marshal(before)
	if err != nil {
		panic(err)
	}
	var document any
	decode(text, &document)
	for _, operation := range patch {
		ok := false
		if document, ok = operate(document, strings.Split(operation.Path, "/")[1:], operation); !ok {
			return nil, false
		}
	}
	if text, err = json.Marshal(document); err != nil {
		panic(err)
	}
	after := &v0.Instance{}
	decode(text, after)
	return after, true
}

var unescaper = strings.NewReplacer("~1", "/", "~0", "~")

// operate applies an operation to the value at a path, and returns the changed value.
func operate(value any, at []string, o jsonpatch.Operation) (any, bool) {
	switch v := value.(type) {
	case map[string]any:
		key := unescaper.Replace(at[0])
		child, found := v[key]
		switch {
		case len(at) > 1:
			changed, ok := operate(child, at[1:], o)
			if found {
				v[key] = changed
			}
			return v, ok
		case o.Op == "test":
			return v, reflect.DeepEqual(child, o.Value) // a key that is absent equals null
		case o.Op == "remove":
			delete(v, key)
			return v, found
		}
		v[key] = o.Value
		return v, found || o.Op == "add"
	case []any:
		if len(at) == 1 && at[0] == "-" {
			return append(v, o.Value), o.Op == "add"
		}
		index, err := strconv.Atoi(at[0])
		switch {
		case err != nil || index >= len(v):
			return v, false
		case len(at) > 1:
			changed, ok := operate(v[index], at[1:], o)
			v[index] = changed
			return v, ok
		case o.Op == "test":
			return v, reflect.DeepEqual(v[index], o.Value)
		case o.Op == "remove":
			return slices.Delete(v, index, index+1), true
		case o.Op == "replace":
			v[index] = o.Value
			return v, true
		}
	}
	return value, false
}
