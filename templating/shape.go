package templating

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/templating/internal/expr"
	"akri.sh/akri/templating/internal/fault"
	"akri.sh/akri/templating/internal/value"
)

var (
	metadataPath    = Path{Key("metadata")}
	namePath        = Path{Key("metadata"), Key("name")}
	selectorPath    = Path{Key("spec"), Key("selector")}
	annotationsPath = Path{Key("metadata"), Key("annotations")}
)

// literalKeysOnly reports whether the keys of the map at field must be literals.
// An expression there could add a second kind or another namespace.
func literalKeysOnly(field Path) bool {
	return len(field) == 0 || slices.Equal(field, metadataPath)
}

// shape checks the fields that all objects have.
type shape struct {
	*reporter
	source map[string]any
}

// checkShape checks apiVersion, kind, metadata and status, and returns the kind.
func checkShape(r *reporter, source map[string]any) schema.GroupVersionKind {
	s := shape{reporter: r, source: source}
	apiVersion := s.literal(Path{Key("apiVersion")}, `write a literal, as in apiVersion: apps/v1`)
	kind := s.literal(Path{Key("kind")}, `write a literal, as in kind: Deployment`)
	if apiVersion != "" && !v0.ValidAPIVersion(apiVersion) {
		s.reportf(Path{Key("apiVersion")}, "write GROUP/VERSION, or v1 for the core group",
			"%s is not an API version", fault.Quote(apiVersion, 63))
	}
	if kind != "" && !v0.ValidKind(kind) {
		s.reportf(Path{Key("kind")}, "write letters and digits, as in kind: Deployment", "%s is not a kind", fault.Quote(kind, 63))
	}
	if kind == "List" && apiVersion == "v1" {
		s.reportf(Path{Key("kind")}, "write each object of the list as a template of its own", "a List is not an object")
	}
	if _, found := source["status"]; found {
		s.reportf(Path{Key("status")}, "remove it", "the status of an object is written by its own controller")
	}
	s.metadata()
	return schema.FromAPIVersionAndKind(apiVersion, kind)
}

// serverFields are fields of metadata that templates cannot set, with the hint.
var serverFields = map[string]string{
	"generateName":               "broker resources need a name that is known in advance; write name",
	"ownerReferences":            "Akri sets the owner itself",
	"managedFields":              "remove it",
	"resourceVersion":            "remove it",
	"uid":                        "remove it",
	"generation":                 "remove it",
	"creationTimestamp":          "remove it",
	"deletionTimestamp":          "remove it",
	"deletionGracePeriodSeconds": "remove it",
	"selfLink":                   "remove it",
}

func (s shape) metadata() {
	metadata, ok := s.source["metadata"].(map[string]any)
	if !ok {
		if _, found := s.source["metadata"]; found {
			s.reportf(metadataPath, "write metadata as a map with a name",
				"metadata must be a map, not %s", decodedKind(s.source["metadata"]))
		} else {
			s.reportf(metadataPath, "write metadata with a name", "metadata is missing")
		}
		return
	}
	s.name(metadata["name"])
	if _, found := metadata["namespace"]; found {
		s.literal(metadataPath.with(Key("namespace")),
			"write a literal, or leave it out: objects are created in the namespace of the Configuration")
	}
	for _, key := range value.Keys(metadata) {
		if hint, found := serverFields[key]; found {
			s.reportf(metadataPath.with(Key(key)), hint, "%s cannot be set by a template", key)
		}
	}
}

func (s shape) name(name any) {
	switch name := name.(type) {
	case string:
		if name == "" {
			s.reportf(namePath, s.nameHint(), "the name is empty")
		} else if !expr.Has(name) {
			if f := checkName(name); f != nil {
				s.report(namePath, "", f)
			}
		}
	case nil:
		s.reportf(namePath, s.nameHint(), "the name is missing")
	default:
		s.reportf(namePath, "quote it", "the name must be a string, not %s", decodedKind(name))
	}
}

func (s shape) nameHint() string {
	if s.origin.Level == InstanceLevel {
		return `write one that differs from device to device: name: "{{ INSTANCE_NAME }}-broker"`
	}
	return `write one: name: "{{ CONFIGURATION_NAME }}-broker"`
}

// literal returns a field that must be a literal.
func (s shape) literal(field Path, hint string) string {
	v := field.Lookup(s.source)
	name := field[len(field)-1].Key
	literal, isText := v.(string)
	switch {
	case v == nil:
		s.reportf(field, hint, "%s is missing", name)
	case !isText:
		s.reportf(field, hint, "%s must be a string, not %s", name, decodedKind(v))
	case literal == "":
		s.reportf(field, hint, "%s is empty", name)
	case expr.Has(literal):
		s.report(field, literal, fault.Newf(fault.Whole, hint,
			"%s cannot be an expression: it is checked and authorized before any device is known", name))
	default:
		return literal
	}
	return ""
}

// decodedKind is value.KindName for values that may still be as they were decoded.
func decodedKind(v any) string {
	if normal, err := value.Normalize(v); err == nil {
		return value.KindName(normal)
	}
	return value.KindName(v)
}

// checkName returns a fault for names that no kind accepts.
func checkName(name string) *fault.Fault {
	const maxLength = 253
	switch {
	case name == "":
		return fault.Newf(fault.Whole, "", "the name is empty")
	case len(name) > maxLength:
		return fault.Newf(fault.Whole, "shorten it", "the name has %d characters, names are limited to %d", len(name), maxLength)
	case name == "." || name == ".." || strings.ContainsAny(name, "/%"):
		return fault.Newf(fault.Whole, "use letters, digits and dashes", "a name cannot be . or .. and cannot contain / or %%")
	}
	return nil
}
