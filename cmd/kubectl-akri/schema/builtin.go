package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	gvk "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"akri.sh/akri/internal/finding"
	"akri.sh/akri/internal/text"
	"akri.sh/akri/templating"
)

// builtIn returns a scheme with the kinds that brokers commonly use.
var builtIn = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, networkingv1.AddToScheme,
		policyv1.AddToScheme, autoscalingv1.AddToScheme, autoscalingv2.AddToScheme, discoveryv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(fmt.Sprintf("register Kubernetes types: %v", err)) // does not depend on input
		}
	}
	return scheme
})

var (
	metaType     = reflect.TypeFor[metav1.ObjectMeta]()
	selectorType = reflect.TypeFor[metav1.LabelSelector]()
	// metadataFields are the fields of metadata that people usually set.
	metadataFields = []string{"annotations", "labels", "name", "namespace"}
)

// CheckBuiltIn returns what the API server refuses in a rendered object of any cluster: wrong
// names, labels and annotations, and in kinds built into Kubernetes also unknown fields, values
// of wrong types, ports and what is in a list twice. It does not report other missing fields.
// Without a source, the findings have no positions.
func CheckBuiltIn(object map[string]any, source Source) []finding.Finding {
	c := &checker{object: object, source: source, rendered: true}
	c.types()
	rule := validation.IsDNS1123Subdomain
	switch apiVersion, _ := object["apiVersion"].(string); {
	case apiVersion == "v1" && object["kind"] == "Service":
		rule = validation.IsDNS1123Label
		c.ports()
	case strings.HasPrefix(apiVersion, rbacv1.GroupName+"/"):
		rule = content.IsPathSegmentName
	}
	at := templating.Keys("metadata", "name")
	if name, isString := at.Lookup(object).(string); isString {
		c.refuse(templating.Diagnostic{Field: at}, describe(name), rule(name), "dnsLabel")
	}
	return c.findings
}

// types checks the object against the type of its kind, if that is built into Kubernetes.
func (c *checker) types() {
	apiVersion, _ := c.object["apiVersion"].(string)
	name, _ := c.object["kind"].(string)
	k := gvk.FromAPIVersionAndKind(apiVersion, name)
	t, found := builtIn().AllKnownTypes()[k]
	if found {
		c.typed(nil, t, c.object)
		return
	}
	c.unknownKind(k)
	if metadata := c.object["metadata"]; metadata != nil {
		c.typed(templating.Keys("metadata"), metaType, metadata)
	}
}

// ports checks the ports of a Service. The original Akri accepts any, and then fails to
// create the Service.
func (c *checker) ports() {
	var service corev1.Service
	if runtime.DefaultUnstructuredConverter.FromUnstructured(c.object, &service) != nil {
		return // typed has reported it
	}
	spec := &service.Spec
	fields, _ := c.object["spec"].(map[string]any)
	near := text.Nearest("ports", names(fields))
	misspelt := near != "" && near != "ports"
	if len(spec.Ports) == 0 && !misspelt && spec.ClusterIP != corev1.ClusterIPNone && spec.Type != corev1.ServiceTypeExternalName {
		c.report(templating.Keys("spec"), "add a port, or set clusterIP: None", "ports is missing")
	}
	for i, port := range spec.Ports {
		if port.Name == "" && len(spec.Ports) > 1 {
			c.report(append(templating.Keys("spec", "ports"), templating.Index(i)), "each of several ports needs a name", "name is missing")
		}
	}
}

// typed checks a value against a type. The API server's decoder judges each value without
// what is below it, because it stops at the first mistake and does not say where that is.
func (c *checker) typed(at templating.Path, t reflect.Type, v any) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	target := reflect.New(t)
	_, isList := v.([]any) // the decoder takes a list of numbers for bytes, but server-side apply does not
	if err := decode(v, target.Interface()); err != nil || isList && t.Elem().Kind() == reflect.Uint8 {
		want := t.String()
		if _, found := forms[want]; !found {
			want = t.Kind().String()
		}
		c.wrongType(at, want, v, nil)
		return
	}
	if _, isCustom := reflect.TypeAssert[json.Unmarshaler](target); isCustom || t.Kind() == reflect.Interface {
		return
	}
	switch v := v.(type) {
	case []any:
		for i, element := range v {
			below := append(slices.Clip(at), templating.Index(i))
			if element == nil { // which the decoder accepts
				c.wrongType(below, "", nil, nil)
			}
			c.typed(below, t.Elem(), element)
		}
	case map[string]any:
		if t == selectorType && bareLabels(v) {
			const hint = `put the labels below matchLabels, as in matchLabels: "{{ LABEL_SELECTOR }}"`
			c.report(at, hint, "the selector of this kind needs matchLabels")
			return
		}
		fields := value.TypeReflectEntryOf(t).Fields()
		for _, key := range names(v) {
			below := append(slices.Clip(at), templating.Key(key))
			switch field := fields[key]; {
			case t.Kind() == reflect.Map:
				c.typed(below, t.Elem(), v[key])
			case field != nil:
				if c.typed(below, field.GetFrom(target.Elem()).Type(), v[key]); c.rendered || below[0].Key == "metadata" {
					c.field(below, t, v[key])
				}
			default:
				hint := "check the indentation; kubectl explain shows where fields belong"
				if near := text.Nearest(key, names(fields)); near != "" {
					hint = "did you mean " + near + "?"
				}
				c.reportKey(below, hint, fmt.Sprintf("unknown field %q", key))
			}
		}
	}
}

// decode decodes a value, but not what is in a map or a list.
func decode(v, into any) error {
	switch v.(type) {
	case map[string]any:
		v = map[string]any{}
	case []any:
		v = []any{}
	}
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(data, into)
}

// bareLabels reports whether a selector holds labels directly, as a Service's does.
func bareLabels(fields map[string]any) bool {
	return fields["matchLabels"] == nil && fields["matchExpressions"] == nil && len(fields) > 0 &&
		text.Nearest(names(fields)[0], []string{"matchLabels", "matchExpressions"}) == ""
}
