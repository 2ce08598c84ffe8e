package schema

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	gvk "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"akri.sh/akri/templating"
)

// builtIn are the kinds that brokers are made of, by the types of Kubernetes.
var builtIn = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, networkingv1.AddToScheme,
		policyv1.AddToScheme, autoscalingv2.AddToScheme, discoveryv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(fmt.Sprintf("the types of Kubernetes cannot be registered: %v", err)) // the same in each run
		}
	}
	return scheme
})

// CheckBuiltIn finds fields that a kind built into Kubernetes does not have, and
// values of a wrong type, in a rendered object. It says nothing about other kinds,
// and nothing about fields that are missing.
func CheckBuiltIn(object map[string]any) []Problem {
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	t, found := builtIn().AllKnownTypes()[gvk.FromAPIVersionAndKind(apiVersion, kind)]
	if !found {
		return nil
	}
	c := &checker{}
	c.typed(t, object)
	return c.problems
}

// typed compares a value with a type as a strict decoder does.
func (c *checker) typed(t reflect.Type, value any) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if value == nil {
		return
	}
	if _, itself := reflect.New(t).Interface().(json.Unmarshaler); itself {
		c.decoded(t, value)
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		c.structure(t, value)
	case reflect.Map:
		c.object(&node{PreserveUnknown: true}, value)
		fields, _ := value.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(fields)) {
			c.at(templating.Key(key), func() { c.typed(t.Elem(), fields[key]) })
		}
	case reflect.Slice:
		c.elements(t, value)
	case reflect.String:
		c.written(value)
	case reflect.Bool:
		c.value(&node{Type: "boolean"}, value)
	case reflect.Int, reflect.Int32, reflect.Int64:
		c.whole(t, value)
	case reflect.Float64:
		c.number(&node{Type: "number"}, value)
	}
}

// written checks text; an expression often yields something else.
func (c *checker) written(value any) {
	hint := ""
	switch value.(type) {
	case string:
		return
	case bool, int64, float64:
		hint = fmt.Sprintf("put it in quotes: %q; an expression yields text with | toString", fmt.Sprint(value))
	case []any:
		hint = `an expression makes text of a list with | join ","`
	case map[string]any:
		hint = "write one text; an expression makes text of a map with | toJson"
	}
	c.report(hint, "this must be text, not %s", describe(value))
}

func (c *checker) whole(t reflect.Type, value any) {
	n := &node{Type: "integer"}
	if t.Kind() == reflect.Int32 {
		n.Format = "int32"
	}
	before := len(c.problems)
	c.number(n, value)
	if _, isText := value.(string); isText && len(c.problems) > before {
		c.problems[before].Hint = "write digits without quotes; an expression must be the whole value, and | int makes a number of text"
	}
}

func (c *checker) structure(t reflect.Type, value any) {
	fields, isMap := value.(map[string]any)
	known := fieldsOf(t)
	if !isMap {
		c.report("write its fields indented below it", "this must be a map of fields, not %s", describe(value))
		return
	}
	if t == reflect.TypeFor[metav1.LabelSelector]() && bareLabels(fields) {
		c.report(`write matchLabels: below it, and the labels there: matchLabels: "{{ LABEL_SELECTOR }}"`, "labels stand here, where this kind wants matchLabels")
		return
	}
	names := slices.Sorted(maps.Keys(known))
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		c.at(templating.Key(key), func() {
			if field, found := known[key]; found {
				c.typed(field, fields[key])
				return
			}
			hint := "look at the indentation: kubectl explain shows where fields belong"
			if near := templating.Nearest(key, names); near != "" {
				hint = "did you mean " + near + "?"
			}
			c.problems = append(c.problems, Problem{Path: slices.Clone(c.path), Cause: fmt.Sprintf("Kubernetes knows no field %q here", key), Hint: hint, OfKey: true})
		})
	}
}

// bareLabels reports that a selector holds labels as that of a Service does.
func bareLabels(fields map[string]any) bool {
	return fields["matchLabels"] == nil && fields["matchExpressions"] == nil && len(fields) > 0 &&
		templating.Nearest(slices.Sorted(maps.Keys(fields))[0], []string{"matchLabels", "matchExpressions"}) == ""
}

// fieldsOf is the fields of a type by their names in JSON.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := make(map[string]reflect.Type)
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case name == "" && (f.Anonymous || options == "inline"):
			maps.Copy(fields, fieldsOf(f.Type))
		case name != "":
			fields[name] = f.Type
		}
	}
	return fields
}

func (c *checker) elements(t reflect.Type, value any) {
	if t.Elem().Kind() == reflect.Uint8 {
		text, isText := value.(string)
		if _, err := base64.StdEncoding.DecodeString(text); !isText || err != nil {
			c.report(`encode it: {{ … | b64enc }}; a Secret takes plain text in stringData, a ConfigMap in data`, "this must be text in Base64")
		}
		return
	}
	before := len(c.problems)
	c.list(&node{Items: &node{}}, value)
	if len(c.problems) > before {
		return
	}
	for i, element := range value.([]any) {
		c.at(templating.Index(i), func() { c.typed(t.Elem(), element) })
	}
}

// decoded asks a type that has its own way of reading.
func (c *checker) decoded(t reflect.Type, value any) {
	data, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(data, reflect.New(t).Interface())
	}
	number, isNumber := value.(float64)
	if t == reflect.TypeFor[intstr.IntOrString]() && isNumber && number != math.Trunc(number) {
		err = fmt.Errorf("%v is no whole number", value)
	}
	if err == nil {
		return
	}
	switch t {
	case reflect.TypeFor[resource.Quantity]():
		c.report("write an amount such as 1, 100m or 64Mi", "%s is not an amount", describe(value))
	case reflect.TypeFor[intstr.IntOrString]():
		c.report("write a whole number, or the name of a port in quotes", "this must be a number or text, not %s", describe(value))
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		c.report("write it as 2026-01-31T12:00:00Z", "%s is not a time", describe(value))
	default:
		c.report("", "%s is not a %s", describe(value), t.Name())
	}
}
