package schema

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	openapierrors "k8s.io/kube-openapi/pkg/validation/errors"
	smd "sigs.k8s.io/structured-merge-diff/v6/value"

	"akri.sh/akri/internal/finding"
	"akri.sh/akri/internal/text"
	"akri.sh/akri/templating"
)

// Source is the file that an object comes from.
type Source interface {
	// Finding returns a mistake in a field, or in a key if it is the text of the diagnostic, with its place.
	Finding(templating.Diagnostic) finding.Finding
	// Written returns the text of a scalar as it is written in the file, without quotes.
	Written(at templating.Path) string
}

// template is the source of a rendered object.
type template interface {
	// FromSample reports whether the value at a place may be another one with a real device.
	FromSample(templating.Diagnostic) bool
}

// Check returns the mistakes in an object as decoded from YAML or JSON, in the order of
// their paths. isAkri reports whether the kind is one of Akri's; objects of other kinds
// are not checked. Without a source, the findings have no positions.
func Check(object map[string]any, source Source) (findings []finding.Finding, isAkri bool) {
	c := &checker{object: object, source: source}
	k, wrong, hint := find(object)
	switch {
	case wrong != "" && object[wrong] == nil:
		c.report(templating.Keys(wrong), "use "+wrong+": "+hint, "%s is missing", wrong)
		return c.findings, true
	case wrong != "":
		c.report(templating.Keys(wrong), "use "+wrong+": "+hint, "unknown %s %q", wrong, object[wrong])
		return c.findings, true
	case k == nil:
		return nil, false
	}
	c.metadata()
	c.content(k)
	slices.SortStableFunc(c.findings, func(a, b finding.Finding) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Cause, b.Cause))
	})
	return c.findings, true
}

// checker collects the findings about an object.
type checker struct {
	object   map[string]any
	source   Source
	rendered bool // expressions may have yielded the values, which are checked too
	findings []finding.Finding
}

func (c *checker) report(at templating.Path, hint, format string, args ...any) {
	c.add(templating.Diagnostic{Field: at}, hint, fmt.Sprintf(format, args...))
}

// reportKey reports a mistake in the key at the end of a path.
func (c *checker) reportKey(at templating.Path, hint, cause string) {
	c.add(templating.Diagnostic{Field: at, Text: at[len(at)-1].Key}, hint, cause)
}

// addValue adds a mistake in the value of a field, or in a key. With a real device, it may be
// another one.
func (c *checker) addValue(at templating.Diagnostic, hint, cause string) {
	c.add(at, hint, cause)
	if t, isTemplate := c.source.(template); isTemplate && t.FromSample(at) {
		c.findings[len(c.findings)-1].Level = finding.Warning
	}
}

func (c *checker) add(at templating.Diagnostic, hint, cause string) {
	at.Cause, at.Hint = errors.New(cause), hint
	found := finding.Finding{Mistake: at.In("").Mistake}
	if c.source != nil {
		found = c.source.Finding(at)
	}
	c.findings = append(c.findings, found)
}

// metadata checks the metadata, which definitions leave to the API server.
func (c *checker) metadata() {
	at := templating.Keys("metadata")
	fields, isMap := c.object["metadata"].(map[string]any)
	switch {
	case c.object["metadata"] == nil:
		c.missing(nil, "metadata", "object", nil)
		return
	case !isMap: // the schema reports it
		return
	}
	if fields["name"] == nil {
		c.missing(at, "name", "string", metadataFields)
	}
	c.typed(at, metaType, fields)
}

// content checks an object in the same steps as the API server.
func (c *checker) content(k *kind) {
	content := runtime.DeepCopyJSON(c.object)
	delete(content, "status") // ignored when an object is applied
	defaulting.PruneNonNullableNullsWithoutDefaults(content, k.schema)
	unknown := schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	for _, path := range pruning.PruneWithOptions(content, k.schema, true, unknown) {
		c.unknown(k, templating.PathIn(c.object, path))
	}
	defaulting.Default(content, k.schema)
	located := false // errors of another type repeat those with a place, as sentences
	mistakes := k.values.Validate(content).Errors
	for _, err := range mistakes {
		if mistake, ok := errors.AsType[*openapierrors.Validation](err); ok {
			c.mistake(k, mistake)
			located = true
		}
	}
	if len(mistakes) > 0 && !located {
		c.report(nil, "correct the field that it names", "%v", mistakes[0])
	}
	// Only the name matters to rules; the rest was checked.
	name, isString := templating.Keys("metadata", "name").Lookup(c.object).(string)
	if !isString {
		name = "x"
	}
	content["metadata"] = map[string]any{"name": name}
	valid := len(c.findings) == 0
	errs := listtype.ValidateListSetsAndMaps(nil, k.schema, content)
	violated, _ := k.rules.Validate(context.Background(), nil, k.schema, content, nil, celconfig.RuntimeCELCostBudget)
	for _, err := range append(errs, violated...) {
		at := templating.PathIn(c.object, err.Field)
		cannotEvaluate := strings.Contains(err.Detail, "rule: ")
		switch {
		case err.Type == field.ErrorTypeDuplicate:
			c.report(at, "remove one", "%s is set twice", describe(err.BadValue))
		case cannotEvaluate && valid:
			c.report(at, "report it as a bug", "%s", err.Detail)
		case !cannotEvaluate:
			c.violated(at, err.Detail)
		}
	}
}

// mistake reports an error of the schema's validator, which begins with the path.
func (c *checker) mistake(k *kind, invalid *openapierrors.Validation) {
	at := templating.PathIn(c.object, invalid.Name)
	s, value := k.at(at), at.Lookup(c.object)
	_, should, _ := strings.Cut(invalid.Error(), " in body ")
	switch invalid.Code() {
	case openapierrors.RequiredFailCode:
		parent, key := at[:len(at)-1], at[len(at)-1].Key
		c.missing(parent, key, s.Type, names(k.at(parent).Properties))
	case openapierrors.InvalidTypeCode:
		_, types, _ := strings.Cut(should, "must be of type ")
		want, _, _ := strings.Cut(types, ":")
		if s.XIntOrString {
			want = "x-kubernetes-int-or-string"
		}
		c.wrongType(at, want, value, names(s.Properties))
	case openapierrors.PatternFailCode:
		c.report(at, cmp.Or(patterns[s.ValueValidation.Pattern], "it "+should), "%s is not valid", describe(value))
	default:
		c.report(at, "it "+should, "%s is not valid", describe(value))
	}
}

// patterns are the remedies for strings that do not match a pattern of the definitions.
var patterns = map[string]string{
	`^[_A-Za-z][_A-Za-z0-9]*$`:              "use letters, digits and _, and do not start with a digit",
	`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`:    "use lowercase letters, digits and -; this field does not allow expressions",
	`^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$`: "use letters and digits; this field does not allow expressions",
}

// violated reports the message of a rule, "cause: remedy", at the field that the message
// starts with.
func (c *checker) violated(at templating.Path, message string) {
	cause, hint, _ := strings.Cut(message, ": ")
	first, _, _ := strings.Cut(cause, " ")
	if below := slices.Concat(at, templating.Keys(strings.Split(first, ".")...)); below.Lookup(c.object) != nil {
		at = below
	}
	c.report(at, hint, "%s", cause)
}

// missing reports that a map lacks a key, unless a similar one is reported as unknown.
func (c *checker) missing(at templating.Path, key, keyType string, known []string) {
	fields, _ := at.Lookup(c.object).(map[string]any)
	for name := range fields {
		if former[name].successor == key || !slices.Contains(known, name) && text.Nearest(name, known) == key {
			return
		}
	}
	hint := "add " + key + ": " + strings.ToUpper(key)
	switch {
	case key == "discoveryHandler":
		hint = "add discoveryHandler: with name: NAME below it, the handler that finds the devices; debugEcho needs no hardware"
	case key == "metadata":
		hint = "add metadata: with name: NAME below it"
	case keyType == "object":
		hint = "add " + key + ": with its fields below it"
	}
	c.report(at, hint, "%s is missing", key)
}

// former are fields that the spec of a Configuration had in older versions of Akri, with
// the field that took the place of each, and the remedy.
var former = map[string]struct{ successor, hint string }{
	"protocol":      {"discoveryHandler", "it is discoveryHandler now, and its details are text; kubectl akri convert rewrites the file"},
	"properties":    {"brokerProperties", "rename it to brokerProperties, or let kubectl akri convert rewrite the file"},
	"brokerPodSpec": {"brokerSpec", "put it below brokerSpec, as spec.brokerSpec.brokerPodSpec, or let kubectl akri convert rewrite the file"},
	"units":         {"", "remove it: it never had an effect"},
}

// unknown reports a field that the API server drops.
func (c *checker) unknown(k *kind, at templating.Path) {
	if len(at) == 0 {
		at = templating.Keys("") // a key without a character
	}
	parent, key := at[:len(at)-1], at[len(at)-1].Key
	if old, ok := former[key]; ok && k == &kinds()[0] && parent.String() == "spec" {
		c.reportKey(at, old.hint, key+" is a field of older versions of Akri")
		return
	}
	s := k.at(parent)
	if s == nil || s.Type != "object" { // the value around it is of a wrong type
		return
	}
	known := names(s.Properties)
	hint := "known fields: " + strings.Join(known, ", ")
	if owner := findField(parent, key); owner != "" {
		hint = key + " belongs to " + owner + ": correct the indentation"
	} else if near := text.Nearest(key, known); near != "" {
		hint = "did you mean " + near + "?"
	}
	c.reportKey(at, hint, fmt.Sprintf("unknown field %q", key))
}

// findField returns the path of the map in which a Configuration has a field that is not where
// it was written, or "".
func findField(written templating.Path, key string) string {
	spec := kinds()[0].schema.Properties["spec"].Properties
	if len(written) == 0 && slices.Contains(metadataFields, key) {
		return "metadata"
	}
	if _, found := spec[key]; found {
		return "spec"
	}
	for _, name := range names(spec) {
		if _, found := spec[name].Properties[key]; found {
			return "spec." + name
		}
	}
	switch {
	case smd.TypeReflectEntryOf(reflect.TypeFor[corev1.PodSpec]()).Fields()[key] != nil:
		return "spec.brokerSpec.brokerPodSpec"
	case smd.TypeReflectEntryOf(reflect.TypeFor[batchv1.JobSpec]()).Fields()[key] != nil:
		return "spec.brokerSpec.brokerJobSpec"
	}
	return ""
}

func names[V any](fields map[string]V) []string { return slices.Sorted(maps.Keys(fields)) }
