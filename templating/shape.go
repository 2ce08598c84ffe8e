package templating

import (
	"fmt"
	"slices"
	"strings"

	v0 "akri.sh/akri/api/v0"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	metadataPath    = Path{Key("metadata")}
	namePath        = Path{Key("metadata"), Key("name")}
	annotationsPath = Path{Key("metadata"), Key("annotations")}
)

// pairFields are the fields of metadata that hold pairs of texts.
var pairFields = []string{"labels", "annotations"}

// isDirective reports that a field is an annotation for us and not of the object.
func isDirective(field Path) bool {
	return len(field) == 3 && slices.Equal(field[:2], annotationsPath) && reserved(field[2].Key)
}

// literalKeysOnly says where no expression may stand in a key: it could make a
// second kind or another namespace.
func literalKeysOnly(field Path) bool {
	return len(field) == 0 || slices.Equal(field, metadataPath)
}

// shape checks what is the same for all objects and gives the kind.
func (c *compiler) shape(source map[string]any) schema.GroupVersionKind {
	apiVersion := c.literal(source, Path{Key("apiVersion")}, `write it out, as in apiVersion: apps/v1`)
	kind := c.literal(source, Path{Key("kind")}, `write it out, as in kind: Deployment`)
	version, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || apiVersion != "" && (version.Version == "" || version.String() != apiVersion) {
		c.report(Path{Key("apiVersion")}, faultf(-1, "write GROUP/VERSION, or v1 for the core group", "%s is not an API version", quote(apiVersion, 63)))
	}
	if kind == "List" && apiVersion == "v1" {
		c.report(Path{Key("kind")}, faultf(-1, "write each object of the list as a template of its own", "a List is not an object"))
	}
	if _, found := source["status"]; found {
		c.report(Path{Key("status")}, faultf(-1, "remove it", "the status of an object is written by its own controller"))
	}
	c.metadata(source)
	return version.WithKind(kind)
}

// serverFields are fields of metadata that are not for templates.
var serverFields = map[string]string{
	"generateName":               "broker resources need a name that is known beforehand; write name",
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

func (c *compiler) metadata(source map[string]any) {
	metadata, isMap := source["metadata"].(map[string]any)
	if !isMap {
		if _, found := source["metadata"]; found {
			c.report(metadataPath, faultf(-1, "write metadata out as a map with name", "metadata must be a map, not %s", kindName(source["metadata"])))
		} else {
			c.report(metadataPath, faultf(-1, "write metadata with a name", "metadata is missing"))
		}
		return
	}
	name := metadataPath.with(Key("name"))
	switch v := metadata["name"].(type) {
	case string:
		if v == "" {
			c.report(name, faultf(-1, c.nameHint(), "the name is empty"))
		} else if !strings.Contains(v, "{{") {
			if f := checkName(v); f != nil {
				c.report(name, f)
			}
		}
	case nil:
		c.report(name, faultf(-1, c.nameHint(), "the name is missing"))
	default:
		c.report(name, faultf(-1, "quote it", "the name must be text, not %s", anyKindName(v)))
	}
	if _, found := metadata["namespace"]; found {
		c.literal(source, metadataPath.with(Key("namespace")), "write it out, or leave it out: objects are made in the namespace of the Configuration")
	}
	for _, key := range keysOf(metadata) {
		if hint, found := serverFields[key]; found {
			c.report(metadataPath.with(Key(key)), faultf(-1, hint, "%s cannot be set by a template", key))
		}
	}
}

func (c *compiler) nameHint() string {
	if c.level == InstanceLevel {
		return `write one that differs from device to device: name: "{{ INSTANCE_NAME }}-broker"`
	}
	return `write one: name: "{{ CONFIGURATION_NAME }}-broker"`
}

// literal is a field that must be written out.
func (c *compiler) literal(source map[string]any, field Path, hint string) string {
	var value any = source
	for _, step := range field {
		m, _ := value.(map[string]any)
		value = m[step.Key]
	}
	name := field[len(field)-1].Key
	text, isText := value.(string)
	switch {
	case value == nil:
		c.report(field, faultf(-1, hint, "%s is missing", name))
	case !isText:
		c.report(field, faultf(-1, hint, "%s must be text, not %s", name, anyKindName(value)))
	case text == "":
		c.report(field, faultf(-1, hint, "%s is empty", name))
	case strings.Contains(text, "{{"):
		c.reportText(field, text, faultf(-1, hint, "%s cannot be an expression: it is part of what is checked and granted before any device is known", name))
	default:
		return text
	}
	return ""
}

// anyKindName is kindName for values that may still be as they were decoded.
func anyKindName(value any) string {
	if normal, err := normalScalar(value); err == nil {
		return kindName(normal)
	}
	return kindName(value)
}

// checkName refuses what no kind takes as a name.
func checkName(name string) *fault {
	switch {
	case name == "":
		return faultf(-1, "", "the name is empty")
	case len(name) > 253:
		return faultf(-1, "shorten it", "the name has %d characters, names are limited to 253", len(name))
	case name == "." || name == ".." || strings.ContainsAny(name, "/%"):
		return faultf(-1, "use letters, digits and dashes", "a name cannot be . or .. nor hold / or %%")
	}
	return nil
}

// annotations is the literal annotations of a template.
func (c *compiler) annotations(source map[string]any) map[string]any {
	metadata, _ := source["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	return annotations
}

// podTemplates says where the workload kinds built into Kubernetes hold the
// template of their pods.
var podTemplates = map[schema.GroupKind][]string{
	{Group: "apps", Kind: "Deployment"}:        {"spec", "template"},
	{Group: "apps", Kind: "StatefulSet"}:       {"spec", "template"},
	{Group: "apps", Kind: "DaemonSet"}:         {"spec", "template"},
	{Group: "apps", Kind: "ReplicaSet"}:        {"spec", "template"},
	{Group: "", Kind: "ReplicationController"}: {"spec", "template"},
	{Group: "batch", Kind: "Job"}:              {"spec", "template"},
	{Group: "batch", Kind: "CronJob"}:          {"spec", "jobTemplate", "spec", "template"},
}

// metadataPaths is where a kind has labels and annotations that become those of
// objects Akri knows: of the object itself first.
func metadataPaths(kind schema.GroupKind) []Path {
	paths := []Path{metadataPath}
	if kind == (schema.GroupKind{Group: "batch", Kind: "CronJob"}) {
		paths = append(paths, Path{Key("spec"), Key("jobTemplate"), Key("metadata")})
	}
	if podTemplate, found := podTemplates[kind]; found {
		var path Path
		for _, key := range podTemplate {
			path = append(path, Key(key))
		}
		paths = append(paths, append(path, Key("metadata")))
	}
	return paths
}

// checkMetadata refuses labels and annotations that are not for templates, as
// far as they are written out.
func (c *compiler) checkMetadata(kind schema.GroupVersionKind, source map[string]any) {
	for i, path := range metadataPaths(kind.GroupKind()) {
		metadata, _ := follow(source, path).(map[string]any)
		for _, field := range pairFields {
			at := path.with(Key(field))
			pairs, isMap := metadata[field].(map[string]any)
			if !isMap && metadata[field] != nil {
				if text, isText := metadata[field].(string); !isText || !strings.Contains(text, "{{") {
					c.report(at, faultf(-1, "write KEY: VALUE pairs", "%s must be a map, not %s", field, anyKindName(metadata[field])))
				}
			}
			for _, key := range keysOf(pairs) {
				if reserved(key) && !isDirective(at.with(Key(key))) {
					c.report(at.with(Key(key)), reservedFault(field, key))
					continue
				}
				value, isText := pairs[key].(string)
				if !isText && !isDirective(at.with(Key(key))) {
					c.report(at.with(Key(key)), faultf(-1, "quote it", "%s hold text, not %s", field, anyKindName(pairs[key])))
				}
				if i == 0 && key == v0.LabelManagedBy && field == "labels" && value != v0.ManagedBy {
					c.report(at.with(Key(key)), managedByFault())
				}
			}
		}
	}
}

func reservedFault(field, key string) *fault {
	hint := "leave it out"
	if key == v0.LabelConfiguration || key == v0.LabelInstance {
		hint = "leave it out: Akri sets it, on the pods of workloads too"
	}
	if slices.Contains(directiveKeys, key) {
		hint = "write it into metadata.annotations of the template itself"
	}
	return faultf(-1, hint, "%s under %s belong to Akri", field, reservedPrefix)
}

func managedByFault() *fault {
	return faultf(-1, "leave it out", "%s", fmt.Sprintf("the label %s is set to %s by Akri", v0.LabelManagedBy, v0.ManagedBy))
}

// follow is the value at a path of keys, or nil.
func follow(value any, path Path) any {
	for _, step := range path {
		m, _ := value.(map[string]any)
		value = m[step.Key]
	}
	return value
}
