package templating

import (
	"maps"
	"slices"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/templating/internal/fault"
	"akri.sh/akri/templating/internal/value"
)

// objectBuilder renders the objects of one template, one after the other.
type objectBuilder struct {
	builder
	template *template
}

// condition evaluates akri.sh/when.
func (b *objectBuilder) condition() (holds, ok bool) {
	when := b.template.when
	if when == nil {
		return true, true
	}
	v, f := b.machine.Evaluate(when)
	if f != nil {
		b.report(annotationsPath.with(Key(annotationWhen)), when.Source(), f)
		return false, false
	}
	return value.Truthy(v), true
}

// content renders the object, with null for the values that cannot be rendered.
func (b *objectBuilder) content() (map[string]any, bool) {
	rendered, ok := b.template.content.render(&b.builder)
	content, _ := rendered.(map[string]any)
	return content, ok
}

// reportName reports a mistake in metadata.name.
func (b *objectBuilder) reportName(f *fault.Fault) { b.report(namePath, b.template.nameSource(), f) }

// finish checks in a rendered object what compiling could not check without
// values, and adds Akri's labels.
func (b *objectBuilder) finish(content map[string]any, s *scope) bool {
	complete := b.finishName(content["metadata"].(map[string]any))
	complete = b.checkSelector(content, s.level) && complete
	for i, path := range b.template.metadata {
		labels := s.ownLabels()
		if i == 0 && b.template.directives.LegacyLabels {
			labels = b.legacyLabels(s)
		}
		complete = b.finishMetadata(content, path, i == 0, labels) && complete
	}
	return complete
}

// legacyLabels returns the labels that Akri put on objects of its old fields. A
// Service of an Instance does not name the Configuration, so that queries for the
// Service of the whole group still find a single one. A Pod names its node.
func (b *objectBuilder) legacyLabels(s *scope) value.Selector {
	labels := maps.Clone(s.ownLabels())
	switch kind := b.template.kind.Kind; {
	case kind == "Service" && s.level == InstanceLevel:
		delete(labels, v0.LabelConfiguration)
	case kind == "Pod" && b.template.binds == bindsNode && len(b.origin.Element) <= 63:
		labels[v0.Domain+"/target-node"] = b.origin.Element
	}
	return labels
}

func (b *objectBuilder) finishName(metadata map[string]any) bool {
	name, ok := metadata["name"].(string)
	switch {
	case ok:
	case metadata["name"] == nil:
		return false // reported
	default:
		b.reportName(fault.Newf(fault.Whole, "make it a string: {{ … | toString }}",
			"the name must be a string, not %s", value.KindName(metadata["name"])))
		return false
	}
	f := checkName(name)
	if f == nil {
		return true
	}
	if name == "" {
		f.Hint = `provide a default: {{ … | default "..." }}`
	}
	b.reportName(f)
	return false
}

// checkSelector reports a workload of configuration level that selects the Pods of the
// Instances, with LABEL_SELECTOR, instead of its own.
func (b *objectBuilder) checkSelector(content map[string]any, level Level) bool {
	if _, workload := podTemplates[b.template.kind.GroupKind()]; !workload || level != ConfigurationLevel {
		return true
	}
	for _, path := range []Path{selectorPath.with(Key("matchLabels")), selectorPath} {
		if selector, isMap := path.Lookup(content).(map[string]any); isMap && selector[v0.LabelLevel] != nil {
			b.report(path, "", fault.Newf(fault.Whole,
				"choose a label of your own, such as app: {{ CONFIGURATION_NAME }}-NAME, for the selector and for the labels of the Pod template",
				"LABEL_SELECTOR selects the Pods of the Instances here, not those of this workload"))
			return false
		}
	}
	return true
}

// finishMetadata checks labels and annotations of the object itself (own) or of
// its Pods, and adds Akri's.
func (b *objectBuilder) finishMetadata(content map[string]any, path Path, own bool, labels value.Selector) bool {
	last := len(path) - 1
	owner, ok := path[:last].Lookup(content).(map[string]any)
	if !ok {
		return true // the API server reports what is missing
	}
	key := path[last].Key
	metadata, ok := owner[key].(map[string]any)
	if !ok {
		if owner[key] != nil {
			return true
		}
		metadata = map[string]any{}
		owner[key] = metadata
	}
	complete := true
	for _, field := range pairFields {
		b.path = append(append(b.path[:0], path...), Key(field))
		complete = b.checkPairs(metadata[field], field, own, labels) && complete
	}
	if complete {
		addLabels(metadata, own, labels)
	}
	return complete
}

func addLabels(metadata map[string]any, own bool, akriLabels value.Selector) {
	if annotations, ok := metadata["annotations"].(map[string]any); ok && len(annotations) == 0 {
		delete(metadata, "annotations") // there were only directives
	}
	labels, _ := metadata["labels"].(map[string]any)
	if labels == nil {
		labels = make(map[string]any, 3)
		metadata["labels"] = labels
	}
	maps.Copy(labels, akriLabels)
	if own {
		labels[v0.LabelManagedBy] = v0.ManagedBy
	}
}

// checkPairs reports rendered labels or annotations that are not text or that a
// template cannot set. It accepts labels equal to Akri's, as from LABEL_SELECTOR.
func (b *objectBuilder) checkPairs(v any, field string, own bool, akriLabels value.Selector) bool {
	pairs, ok := v.(map[string]any)
	if !ok {
		if v != nil {
			b.reportf(b.path, "write KEY: VALUE pairs", "%s must be a map, not %s", field, value.KindName(v))
		}
		return v == nil
	}
	complete := true
	for _, key := range value.Keys(pairs) {
		var f *fault.Fault
		text, isText := pairs[key].(string)
		switch {
		case reserved(key) && (field != "labels" || akriLabels[key] != pairs[key]):
			f = reservedFault(field, key)
			if key == v0.LabelLevel && akriLabels[key] == nil {
				f = levelFault()
			}
		case !isText:
			f = fault.Newf(fault.Whole, "make it a string: {{ … | toString }}",
				"values of %s must be strings, not %s", field, value.KindName(pairs[key]))
		case own && field == "labels" && key == v0.LabelManagedBy && text != v0.ManagedBy:
			f = managedByFault()
		}
		if f != nil {
			b.reportPair(key, f)
			complete = false
		}
	}
	return complete
}

// reportPair reports a fault of one label or annotation. It names the key only if
// it is a literal: a computed key may contain the value of a property.
func (b *objectBuilder) reportPair(key string, f *fault.Fault) {
	path := append(slices.Clone(b.path), Key(key))
	var literal node = b.template.content
	for _, step := range path {
		literal = literalChild(literal, step.Key)
	}
	if literal == nil {
		path = b.path
	}
	b.report(path, "", f)
}
