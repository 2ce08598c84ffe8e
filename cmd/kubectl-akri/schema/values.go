package schema

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	gvk "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"akri.sh/akri/internal/text"
	"akri.sh/akri/templating"
)

// unknownKind reports an object of a kind that is not known but similar to one that is built
// in. Other groups than Kubernetes' own may have kinds of any name.
func (c *checker) unknownKind(k gvk.GroupVersionKind) {
	ours := []string{"apps", "autoscaling", "batch", "extensions", "policy"}
	var versions, kinds []string
	for known, t := range builtIn().AllKnownTypes() {
		switch _, isObject := t.FieldByName("ObjectMeta"); {
		case !isObject:
		case known.Kind == k.Kind:
			versions = append(versions, known.GroupVersion().String())
		case known.GroupVersion() == k.GroupVersion():
			kinds = append(kinds, known.Kind)
		}
	}
	near := text.Nearest(k.Kind, slices.Sorted(slices.Values(kinds)))
	switch cause := fmt.Sprintf("%s has no kind %s", k.GroupVersion(), k.Kind); {
	case !builtIn().IsGroupRegistered(k.Group) && text.Nearest(k.Group, ours) == "":
	case len(versions) > 0:
		c.report(templating.Keys("apiVersion"), "use apiVersion: "+strings.Join(slices.Sorted(slices.Values(versions)), " or "), "%s", cause)
	case near != "":
		c.report(templating.Keys("kind"), "did you mean "+near+"?", "%s", cause)
	}
}

// nameRules are the rules for the field name of some types.
var nameRules = map[reflect.Type]func(string) []string{
	reflect.TypeFor[corev1.Container](): validation.IsDNS1123Label, reflect.TypeFor[corev1.Volume](): validation.IsDNS1123Label,
	reflect.TypeFor[corev1.ContainerPort](): validation.IsValidPortName, reflect.TypeFor[corev1.ServicePort](): validation.IsDNS1123Label,
}

// field checks the value of a field, apart from its type: what the API server refuses in
// any object.
func (c *checker) field(at templating.Path, of reflect.Type, v any) {
	key := at[len(at)-1].Key
	field, found := of.FieldByNameFunc(func(name string) bool { return strings.EqualFold(name, key) })
	if !found { // metadata
		return
	}
	value := templating.Diagnostic{Field: at}
	switch v := v.(type) {
	case string:
		named := len(validation.IsValidPortName(v)) == 0 || len(validation.IsValidPercent(v)) == 0
		if !named && strings.HasSuffix(field.Type.String(), "intstr.IntOrString") {
			c.wrongType(at, "intstr.IntOrString", v, nil)
		}
		if rule := nameRules[of]; rule != nil && key == "name" {
			function := "dnsLabel"
			if of == reflect.TypeFor[corev1.ContainerPort]() {
				function = `dnsLabel | trunc 15 | trimSuffix "-"`
			}
			c.refuse(value, describe(v), rule(v), function)
		}
	case float64: // a whole number of an old field
		c.field(at, of, int64(v))
	case int64:
		unset := v == 0 && key != "port" && key != "containerPort"
		if strings.HasSuffix(strings.ToLower(key), "port") && !unset {
			c.refuse(value, describe(v), validation.IsValidPortNum(int(v)), "")
		}
	case []any:
		c.list(at, field.Tag.Get("patchMergeKey"), v)
		for i := 0; i < len(v) && key == "finalizers"; i++ {
			name, _ := v[i].(string)
			c.refuse(templating.Diagnostic{Field: append(slices.Clip(at), templating.Index(i))}, describe(name), content.IsLabelKey(name), "")
		}
	case map[string]any:
		if field.Type.Kind() != reflect.Map {
			return
		}
		for _, name := range names(v) {
			below := append(slices.Clip(at), templating.Key(name))
			var problems []string // of the key
			switch label, _ := v[name].(string); key {
			case "labels", "matchLabels", "nodeSelector", "selector":
				problems = content.IsLabelKey(name)
				c.refuse(templating.Diagnostic{Field: below}, describe(label), content.IsLabelValue(label), "labelValue")
			case "annotations":
				problems = content.IsLabelKey(strings.ToLower(name))
			case "data", "binaryData", "stringData":
				problems = validation.IsConfigMapKey(name)
			}
			c.refuse(templating.Diagnostic{Field: below, Text: name}, fmt.Sprintf("the key %q", name), problems, "labelValue")
		}
	}
}

// list checks that the elements of a list differ in the field by which the API server tells
// them apart, of which the Go types have only the first: ports also differ in their protocol.
func (c *checker) list(at templating.Path, mergeKey string, elements []any) {
	seen := map[string]templating.Path{}
	for i, element := range elements {
		fields, _ := element.(map[string]any)
		id := fmt.Sprint(mergeKey, " ", fields[mergeKey])
		if strings.HasSuffix(strings.ToLower(mergeKey), "port") {
			protocol, _ := fields["protocol"].(string)
			id += "/" + cmp.Or(protocol, "TCP")
		}
		if reason := fields["whenUnsatisfiable"]; reason != nil {
			id += fmt.Sprint(" with ", reason)
		}
		here := append(slices.Clip(at), templating.Index(i), templating.Key(mergeKey))
		if other := seen[id]; other != nil && fields[mergeKey] != nil {
			if c.source != nil && strings.Contains(c.source.Written(other), "{{") {
				here = other // which may differ with another device
			}
			c.addValue(templating.Diagnostic{Field: here}, "remove one", id+" is set twice")
		}
		seen[id] = here
	}
}

// refuse reports a problem of a value, or of the key at the end of its path. The function
// turns other texts into valid ones.
func (c *checker) refuse(at templating.Diagnostic, what string, problems []string, function string) {
	if len(problems) == 0 {
		return
	}
	hint, _, _ := strings.Cut(problems[0], " (e.g. ") // and a regular expression
	switch known := at.Text == "" && c.source != nil; {
	case !c.rendered || function == "":
	case !known:
		hint += "; if it is an expression, append | " + function
	case strings.Contains(c.source.Written(at.Field), "{{"):
		hint += "; append | " + function
	}
	c.addValue(at, hint, what+" is not valid")
}
