package convert

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"akri.sh/akri/templating"
)

// Doubts returns what in the old fields of a spec does less than its author may expect: texts
// that are replaced neither here nor in Akri, and requests of any device instead of the
// broker's.
func Doubts(spec map[string]any, configuration string) (found templating.Diagnostics) {
	doubt := func(at templating.Path, text, key string) {
		amount := key != "" && (at[len(at)-2].Key == "requests" || at[len(at)-2].Key == "limits")
		d := templating.Diagnostic{Field: at, Text: key}
		switch {
		case amount && text == placeholder:
			return
		case amount && text == "akri.sh/"+configuration:
			d.Cause = errors.New("it requests any device of the Configuration, perhaps another than that of the broker's Instance")
			d.Hint = "write " + placeholder
		case strings.Contains(text, "{{") || text == "PLACEHOLDER":
			d.Cause = errors.New("this text is not replaced: in this field, only " + placeholder + " is, as a name in requests and limits")
			d.Hint = "move the template to instanceBrokerResources, as kubectl akri convert does, and write the expression there"
		default:
			return
		}
		found = append(found, d)
	}
	var walk func(at templating.Path, value any)
	walk = func(at templating.Path, value any) {
		switch value := value.(type) {
		case string:
			doubt(at, value, "")
		case []any:
			for i, element := range value {
				walk(append(slices.Clip(at), templating.Index(i)), element)
			}
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(value)) {
				below := append(slices.Clip(at), templating.Key(key))
				if len(at) > 0 {
					doubt(below, key, key)
				}
				walk(below, value[key])
			}
		}
	}
	old := map[string]any{}
	for _, field := range []string{"brokerSpec", "brokerPodSpec", "brokerJobSpec", "instanceServiceSpec", "configurationServiceSpec"} {
		old[field] = spec[field] // two of them are misplaced
	}
	walk(nil, old)
	return found
}
