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

// builtIn returns a scheme with the kinds that brokers commonly use.
var builtIn = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, networkingv1.AddToScheme,
		policyv1.AddToScheme, autoscalingv2.AddToScheme, discoveryv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(fmt.Sprintf("register Kubernetes types: %v", err)) // does not depend on input
		}
	}
	return scheme
})

// CheckRendered returns what the API server refuses in a rendered object of a kind built
// into Kubernetes: what [CheckBuiltIn] finds or, if that is nothing, ports of a Service.
func CheckRendered(object map[string]any) []Mistake {
	if problems := CheckBuiltIn(object); len(problems) > 0 || object["apiVersion"] != "v1" || object["kind"] != "Service" {
		return problems
	}
	c := &checker{}
	c.at(templating.Key("spec"), func() { c.ports(object["spec"]) })
	return c.problems
}

// ports checks the ports of a Service. The original Akri accepts any, and then fails to
// create the Service.
func (c *checker) ports(service any) {
	spec, _ := service.(map[string]any)
	ports, _ := spec["ports"].([]any)
	if len(ports) == 0 && spec["clusterIP"] != corev1.ClusterIPNone && spec["type"] != string(corev1.ServiceTypeExternalName) {
		c.report("add a port, or set clusterIP: None", "ports is missing")
	}
	lowest, highest := 1.0, float64(math.MaxUint16)
	for i, element := range ports {
		port, _ := element.(map[string]any)
		c.at(templating.Key("ports"), func() {
			c.at(templating.Index(i), func() {
				c.at(templating.Key("port"), func() { c.number(&node{Minimum: &lowest, Maximum: &highest}, port["port"]) })
				if name, _ := port["name"].(string); name == "" && len(ports) > 1 {
					c.report("each of several ports needs a name", "name is missing")
				}
			})
		})
	}
}

// CheckBuiltIn returns the unknown fields and the values of wrong types in a rendered
// object of a kind built into Kubernetes. It does not check other kinds, and does not
// report missing fields.
func CheckBuiltIn(object map[string]any) []Mistake {
	apiVersion, _ := object["apiVersion"].(string)
	k, _ := object["kind"].(string)
	t, found := builtIn().AllKnownTypes()[gvk.FromAPIVersionAndKind(apiVersion, k)]
	if !found {
		return nil
	}
	c := &checker{}
	c.typed(t, object)
	return c.problems
}

// typed checks a value against a type as a strict decoder does.
func (c *checker) typed(t reflect.Type, value any) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if value == nil {
		return
	}
	if _, ok := reflect.TypeAssert[json.Unmarshaler](reflect.New(t)); ok {
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
		c.rendered(value)
	case reflect.Bool:
		c.value(&node{Type: "boolean"}, value)
	case reflect.Int, reflect.Int32, reflect.Int64:
		c.integer(t, value)
	case reflect.Float64:
		c.number(&node{Type: "number"}, value)
	}
}

// rendered checks a string, for which an expression may have yielded another type.
func (c *checker) rendered(value any) {
	hint := ""
	switch value.(type) {
	case string:
		return
	case bool, int64, float64:
		hint = fmt.Sprintf("quote it: %q; in an expression, append | toString", fmt.Sprint(value))
	case []any:
		hint = `in an expression, append | join ","`
	case map[string]any:
		hint = "write a single string; in an expression, append | toJson"
	}
	c.report(hint, "must be a string, not %s", describe(value))
}

// integer checks an integer, for which an expression may have yielded a string.
func (c *checker) integer(t reflect.Type, value any) {
	n := &node{Type: "integer"}
	if t.Kind() == reflect.Int32 {
		n.Format = "int32"
	}
	before := len(c.problems)
	c.number(n, value)
	if _, isText := value.(string); isText && len(c.problems) > before {
		c.problems[before].Hint = "use digits without quotes; an expression must be the whole value, and | int converts a string"
	}
}

// structure checks a map against the fields of a struct.
func (c *checker) structure(t reflect.Type, value any) {
	fields, isMap := value.(map[string]any)
	known := fieldsOf(t)
	if !isMap {
		c.report("put its fields below it, indented", "must be a map, not %s", describe(value))
		return
	}
	if t == reflect.TypeFor[metav1.LabelSelector]() && bareLabels(fields) {
		c.report(`put the labels below matchLabels, as in matchLabels: "{{ LABEL_SELECTOR }}"`, "the selector of this kind needs matchLabels")
		return
	}
	names := slices.Sorted(maps.Keys(known))
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		c.at(templating.Key(key), func() {
			if field, found := known[key]; found {
				c.typed(field, fields[key])
				return
			}
			hint := "check the indentation; kubectl explain shows where fields belong"
			if near := templating.Nearest(key, names); near != "" {
				hint = "did you mean " + near + "?"
			}
			c.reportKey(key, hint)
		})
	}
}

// bareLabels reports whether a selector holds labels directly, as a Service's does.
func bareLabels(fields map[string]any) bool {
	return fields["matchLabels"] == nil && fields["matchExpressions"] == nil && len(fields) > 0 &&
		templating.Nearest(slices.Sorted(maps.Keys(fields))[0], []string{"matchLabels", "matchExpressions"}) == ""
}

// fieldsOf returns the types of the fields of a struct by their JSON names.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := make(map[string]reflect.Type)
	for f := range t.Fields() {
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

// elements checks a list against a slice type.
func (c *checker) elements(t reflect.Type, value any) {
	if t.Elem().Kind() == reflect.Uint8 {
		encoded, ok := value.(string)
		if _, err := base64.StdEncoding.DecodeString(encoded); !ok || err != nil {
			c.report("encode it: {{ … | b64enc }}; a Secret takes plain text in stringData, a ConfigMap in data", "must be encoded in Base64")
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

// decoded checks a value of a type with its own UnmarshalJSON.
func (c *checker) decoded(t reflect.Type, value any) {
	data, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(data, reflect.New(t).Interface())
	}
	number, isNumber := value.(float64)
	if t == reflect.TypeFor[intstr.IntOrString]() && isNumber && number != math.Trunc(number) {
		err = fmt.Errorf("%v is not an integer", value)
	}
	if err == nil {
		return
	}
	switch t {
	case reflect.TypeFor[resource.Quantity]():
		c.report("use a quantity such as 1, 100m or 64Mi", "%s is not a quantity", describe(value))
	case reflect.TypeFor[intstr.IntOrString]():
		c.report("use an integer, or the name of a port in quotes", "must be an integer or a string, not %s", describe(value))
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		c.report("use the form 2026-01-31T12:00:00Z", "%s is not a time", describe(value))
	default:
		c.report("", "%s is not a %s", describe(value), t.Name())
	}
}
