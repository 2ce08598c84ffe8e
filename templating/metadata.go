package templating

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/templating/internal/expr"
	"akri.sh/akri/templating/internal/fault"
	"akri.sh/akri/templating/internal/value"
)

// pairFields are the fields of metadata that contain pairs of texts.
var pairFields = []string{"labels", "annotations"}

// podTemplates maps the workload kinds built into Kubernetes to the path of their
// Pod template.
var podTemplates = map[schema.GroupKind]Path{
	{Group: "apps", Kind: "Deployment"}:        {Key("spec"), Key("template")},
	{Group: "apps", Kind: "StatefulSet"}:       {Key("spec"), Key("template")},
	{Group: "apps", Kind: "DaemonSet"}:         {Key("spec"), Key("template")},
	{Group: "apps", Kind: "ReplicaSet"}:        {Key("spec"), Key("template")},
	{Group: "", Kind: "ReplicationController"}: {Key("spec"), Key("template")},
	{Group: "batch", Kind: "Job"}:              {Key("spec"), Key("template")},
	{Group: "batch", Kind: "CronJob"}:          {Key("spec"), Key("jobTemplate"), Key("spec"), Key("template")},
}

// PodTemplate returns the path of the Pod template in objects of a kind on whose Pods Akri
// sets its labels. A Pod is its own.
func PodTemplate(kind schema.GroupKind) (path Path, found bool) {
	path, found = podTemplates[kind]
	return path, found || kind == schema.GroupKind{Kind: "Pod"}
}

// metadataPaths returns the paths of all metadata in an object of a kind whose
// labels and annotations Akri checks and sets: its own first, then those of its
// Jobs and Pods.
func metadataPaths(kind schema.GroupKind) []Path {
	paths := []Path{metadataPath}
	if kind == (schema.GroupKind{Group: "batch", Kind: "CronJob"}) {
		paths = append(paths, Path{Key("spec"), Key("jobTemplate"), Key("metadata")})
	}
	if podTemplate, found := podTemplates[kind]; found {
		paths = append(paths, podTemplate.with(Key("metadata")))
	}
	return paths
}

// checkMetadata reports literal labels and annotations that templates cannot set.
func checkMetadata(r *reporter, paths []Path, source map[string]any) {
	for i, path := range paths {
		metadata, _ := path.Lookup(source).(map[string]any)
		for _, field := range pairFields {
			checkPairs(r, path.with(Key(field)), metadata[field], i == 0)
		}
	}
}

// checkPairs checks literal labels or annotations. Own is set for those of the
// object itself.
func checkPairs(r *reporter, field Path, v any, own bool) {
	name := field[len(field)-1].Key
	pairs, ok := v.(map[string]any)
	if source, isText := v.(string); !ok && v != nil && !(isText && expr.Has(source)) {
		r.reportf(field, "write KEY: VALUE pairs", "%s must be a map, not %s", name, decodedKind(v))
	}
	for _, key := range value.Keys(pairs) {
		at := field.with(Key(key))
		if isDirective(at) {
			continue
		}
		if reserved(key) {
			r.report(at, "", reservedFault(name, key))
			continue
		}
		text, isText := pairs[key].(string)
		if !isText {
			r.reportf(at, "quote it", "values of %s must be strings, not %s", name, decodedKind(pairs[key]))
		}
		if own && name == "labels" && key == v0.LabelManagedBy && text != v0.ManagedBy {
			r.report(at, "", managedByFault())
		}
	}
}

func reservedFault(field, key string) *fault.Fault {
	hint := "leave it out"
	if key == v0.LabelConfiguration || key == v0.LabelInstance || key == v0.LabelLevel {
		hint = "leave it out: Akri sets it, on the Pods of workloads too"
	}
	if slices.Contains(directiveKeys, key) {
		hint = "write it into metadata.annotations of the template itself"
	}
	return fault.Newf(fault.Whole, hint, "%s under %s belong to Akri", field, reservedPrefix)
}

func levelFault() *fault.Fault {
	return fault.Newf(fault.Whole, "write labels of your own; at configuration level, LABEL_SELECTOR is for selectors only",
		"the label %s belongs to the objects of Instances", v0.LabelLevel)
}

func managedByFault() *fault.Fault {
	return fault.Newf(fault.Whole, "leave it out", "the label %s is set to %s by Akri", v0.LabelManagedBy, v0.ManagedBy)
}
