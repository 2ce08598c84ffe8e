package bundle

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"
)

// Redacted replaces what is left out.
const Redacted = "REDACTED"

// minScrubbed is the length from which a value that was left out of one object is also
// replaced wherever else it occurs. Shorter values occur by chance.
const minScrubbed = 6

// Redactor leaves out what may be a credential. It remembers the values of fields that
// it has left out, so that they are found in other places, too. It is safe for concurrent
// use, and its zero value is ready.
type Redactor struct {
	mu   sync.Mutex
	seen map[string]bool
}

// Object returns a copy of an object without credentials: values of fields, properties,
// environment variables and arguments with the name of a credential, all values of
// discoveryProperties, the data of Secrets, the CA and the path of webhooks,
// managedFields, and the copies of the object that kubectl apply and others keep.
func (r *Redactor) Object(object map[string]any) map[string]any {
	return r.fields(object, open)
}

// copies are annotations with a copy of the object, compressed or not.
var copies = []string{"kubectl.kubernetes.io/last-applied-configuration", "objectset.rio.cattle.io/applied"}

// namedFields are those with the value of what the field name or key of the same map
// names, such as an environment variable.
var namedFields = []string{"value", "values", "default", "defaultvalue", "content"}

// fields copies a map that is the value of a field of a level.
func (r *Redactor) fields(from map[string]any, of level) map[string]any {
	to := make(map[string]any, len(from))
	kind, _ := from["kind"].(string)
	isSecret := strings.Contains(strings.ToLower(kind), "secret")
	name, _ := from["name"].(string)
	if key, ok := from["key"].(string); ok && levelOf(name) == open {
		name = key
	}
	for key, value := range from {
		switch lower := strings.ToLower(key); {
		case key == "managedFields", slices.Contains(copies, key):
		case key == "caBundle":
			to[key] = Redacted
		case key == "stringData", isSecret && slices.Contains([]string{"data", "binaryData", "encryptedData"}, key):
			to[key] = r.value(value, "", credential)
		case key == "discoveryProperties":
			to[key] = r.discoveryProperties(value)
		case key == "clientConfig":
			to[key] = r.clientConfig(value)
		case levelOf(name) != open && slices.Contains(namedFields, lower):
			to[key] = r.value(value, name, levelOf(name))
		case levelOf(name) != open && lower == "valuefrom":
			to[key] = r.value(value, "", reference)
		case key == "key" && of != open && isKey(from, of), key == "path" && of != open && isFile(from):
			to[key] = value
		case key == "args", key == "command":
			to[key] = r.arguments(value, of)
		default:
			to[key] = r.value(value, key, max(levelOf(key), within(of, key)))
		}
	}
	return to
}

// within returns the level of a field whose map has a level, as far as the map tells.
func within(of level, key string) level {
	switch {
	case of == open || key == "apiVersion":
		return open
	case isReference(key):
		return reference
	}
	return credential
}

// value copies a value of a level. The name is that of its field, for references.
func (r *Redactor) value(value any, name string, l level) any {
	switch value := value.(type) {
	case map[string]any:
		return r.fields(value, l)
	case []any:
		list := make([]any, len(value))
		for i, item := range value {
			list[i] = r.value(item, name, l)
		}
		return list
	case string:
		if l == credential || l == reference && !refers(name, value) {
			return r.leaveOut(value)
		}
		return r.document(value)
	case int64, float64:
		if l == credential || l == reference && !refers(name, fmt.Sprint(value)) {
			return Redacted
		}
	}
	return value
}

// document returns a text without credentials. A text that is an object in YAML or JSON,
// such as discoveryDetails or a file in a ConfigMap, is treated as one, because names and
// values can be on different lines.
func (r *Redactor) document(text string) string {
	if !strings.ContainsAny(strings.TrimSpace(text), "\n{[") {
		return r.Text(text)
	}
	var parsed any
	if err := yaml.Unmarshal([]byte(text), &parsed); err != nil || !isDocument(parsed) {
		return r.Text(text)
	}
	if redacted := r.value(parsed, "", open); !reflect.DeepEqual(parsed, redacted) {
		if marshaled, err := yaml.Marshal(redacted); err == nil {
			text = string(marshaled)
		}
	}
	return r.Text(text)
}

// isDocument reports whether the content of a text is an object or a list, and no sentence
// with a colon.
func isDocument(parsed any) bool {
	switch parsed := parsed.(type) {
	case []any:
		return true
	case map[string]any:
		for key := range parsed {
			if strings.ContainsAny(key, " \t\n") {
				return false
			}
		}
		return true
	}
	return false
}

// discoveryProperties leaves out all values: handlers get credentials as properties of
// any name.
func (r *Redactor) discoveryProperties(value any) any {
	list, ok := value.([]any)
	if !ok {
		return r.value(value, "", credential)
	}
	properties := make([]any, len(list))
	for i, item := range list {
		property, ok := item.(map[string]any)
		if !ok {
			properties[i] = r.value(item, "", credential)
			continue
		}
		copied := make(map[string]any, len(property))
		for key, field := range property {
			switch key {
			case "name":
				copied[key] = r.value(field, key, open)
			case "valueFrom":
				copied[key] = r.value(field, key, reference)
			default:
				copied[key] = r.value(field, key, credential)
			}
		}
		properties[i] = copied
	}
	return properties
}

// clientConfig leaves out the path of a webhook, which protects it from other clients.
func (r *Redactor) clientConfig(value any) any {
	copied := r.value(value, "", open)
	if fields, ok := copied.(map[string]any); ok {
		if service, ok := fields["service"].(map[string]any); ok && service["path"] != nil {
			service["path"] = r.value(service["path"], "", credential)
		}
	}
	return copied
}

// arguments copies a command line. The value of a flag may be the next argument.
func (r *Redactor) arguments(value any, of level) any {
	original, ok := value.([]any)
	list, _ := r.value(value, "", of).([]any)
	if !ok || of != open {
		return r.value(value, "", of)
	}
	for i := 1; i < len(list); i++ {
		flag, _ := original[i-1].(string)
		argument, ok := original[i].(string)
		if ok && strings.HasPrefix(flag, "-") && !strings.Contains(flag, "=") && !strings.HasPrefix(argument, "-") && levelOf(flag) != open {
			list[i] = r.value(argument, flag, levelOf(flag))
		}
	}
	return list
}

// leaveOut remembers a value and returns its replacement.
func (r *Redactor) leaveOut(value string) string {
	if value == "" {
		return ""
	}
	if len(value) >= minScrubbed {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.seen == nil {
			r.seen = map[string]bool{}
		}
		r.seen[value] = true
	}
	return Redacted
}

// scrubber returns a replacer of all values that were left out of an object wherever they occur in a
// text, also in base64.
func (r *Redactor) scrubber() *strings.Replacer {
	r.mu.Lock()
	defer r.mu.Unlock()
	var values []string
	for value := range r.seen {
		values = append(values, value, base64.StdEncoding.EncodeToString([]byte(value)))
	}
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) }) // the longest match wins
	var pairs []string
	for _, value := range values {
		pairs = append(pairs, value, Redacted)
	}
	return strings.NewReplacer(pairs...)
}
