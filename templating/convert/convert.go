package convert

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
)

// Fields are the old fields of a Configuration's spec, as decoded from JSON; nil if
// not set.
type Fields struct {
	BrokerPodSpec            map[string]any `json:"brokerPodSpec"`
	BrokerJobSpec            map[string]any `json:"brokerJobSpec"`
	InstanceServiceSpec      map[string]any `json:"instanceServiceSpec"`
	ConfigurationServiceSpec map[string]any `json:"configurationServiceSpec"`
}

// broker reports whether the fields have a broker, whose Pods carry the labels of
// Akri's brokers.
func (f Fields) broker() bool { return f.BrokerPodSpec != nil || f.BrokerJobSpec != nil }

// Path leads from a Configuration's spec to one of the old fields.
type Path []string

// The old fields that are converted.
var (
	BrokerPodSpec            = Path{"brokerSpec", "brokerPodSpec"}
	BrokerJobSpec            = Path{"brokerSpec", "brokerJobSpec"}
	InstanceServiceSpec      = Path{"instanceServiceSpec"}
	ConfigurationServiceSpec = Path{"configurationServiceSpec"}
)

// String returns the path as in brokerSpec.brokerPodSpec.
func (p Path) String() string { return strings.Join(p, ".") }

// Resource is a template and the old field that it was converted from.
type Resource struct {
	From     Path
	Template map[string]any
}

// Lists are broker resources equivalent to the old fields.
type Lists struct {
	Instance      []Resource // for instanceBrokerResources
	Configuration []Resource // for configurationBrokerResources
}

// Templates returns the templates of resources, in order.
func Templates(resources []Resource) []map[string]any {
	templates := make([]map[string]any, len(resources))
	for i, r := range resources {
		templates[i] = r.Template
	}
	return templates
}

// FieldError is an error of one of the old fields.
type FieldError struct {
	Field Path
	Err   error
}

func (e *FieldError) Error() string { return e.Field.String() + ": " + e.Err.Error() }

func (e *FieldError) Unwrap() error { return e.Err }

// BrokerResources converts old fields. It neither changes nor keeps them. An error is a
// [FieldError].
func BrokerResources(f Fields) (Lists, error) {
	var lists Lists
	if f.BrokerPodSpec != nil && f.BrokerJobSpec != nil {
		return lists, &FieldError{Path{"brokerSpec"}, errors.New("brokerPodSpec and brokerJobSpec exclude each other: keep one")}
	}
	if f.BrokerPodSpec != nil {
		lists.Instance = append(lists.Instance, Resource{BrokerPodSpec, pod(f.BrokerPodSpec)})
	}
	if f.BrokerJobSpec != nil {
		template, err := job(f.BrokerJobSpec)
		if err != nil {
			return lists, &FieldError{BrokerJobSpec, err}
		}
		lists.Instance = append(lists.Instance, Resource{BrokerJobSpec, template})
	}
	if f.InstanceServiceSpec != nil {
		selector := f.selector("akri.sh/instance", "{{ INSTANCE_NAME }}")
		template := service(f.InstanceServiceSpec, instanceWord, selector)
		lists.Instance = append(lists.Instance, Resource{InstanceServiceSpec, template})
	}
	if f.ConfigurationServiceSpec != nil {
		selector := f.selector("akri.sh/configuration", "{{ CONFIGURATION_NAME }}")
		template := service(f.ConfigurationServiceSpec, configurationWord, selector)
		lists.Configuration = append(lists.Configuration, Resource{ConfigurationServiceSpec, template})
	}
	return lists, nil
}

// Names of objects. Akri replaces the dots in names of Instances by dashes.
const (
	instanceWord      = `INSTANCE_NAME | replace "." "-"`
	configurationWord = `CONFIGURATION_NAME | replace "." "-"`
	instanceName      = `{{ ` + instanceWord + ` }}`
	// podName begins with the node if there can be several Pods. As in Akri, the
	// node is left out if only one can see the device.
	podName = `{{ if or SHARED (gt (len NODES) 1) }}{{ NODE }}-{{ end }}` + instanceName + `-pod`
	podApp  = `{{ if or SHARED (gt (len NODES) 1) }}{{ labelValue NODE (` + instanceWord + `) "pod" }}` +
		`{{ else }}{{ labelValue (` + instanceWord + `) "pod" }}{{ end }}`
	// withinCapacity is true for as many nodes as the device has slots.
	withinCapacity = `{{ has NODE BROKER_NODES }}`
)

// object returns the template of an object. App is the value of the label app: the
// name, shortened to a valid label value.
func object(apiVersion, kind, name, app string, annotations, spec map[string]any) map[string]any {
	annotations["akri.sh/legacy-labels"] = "true"
	return map[string]any{
		"apiVersion": apiVersion,
		"kind":       kind,
		"metadata": map[string]any{
			"name":        name,
			"annotations": annotations,
			"labels":      map[string]any{"app": app, "controller": controller},
		},
		"spec": spec,
	}
}

// controller is the value of the label with which Akri's Services select brokers.
const controller = "akri.sh"

func pod(old map[string]any) map[string]any {
	spec := podSpec(old)
	pin(spec)
	return object("v1", "Pod", podName, podApp, map[string]any{
		"akri.sh/for-each": "NODES",
		"akri.sh/when":     withinCapacity,
	}, spec)
}

// job returns the template of a Job. Its name contains a digest of the old field, where
// Akri has the Configuration's generation: a Job runs again when its own specification
// changes, and not when another field of the Configuration does.
func job(old map[string]any) (map[string]any, error) {
	digest, err := digestOf(old)
	if err != nil {
		return nil, err
	}
	spec := escape(old).(map[string]any)
	if template, ok := spec["template"].(map[string]any); ok {
		oldTemplate := old["template"].(map[string]any)
		if oldPod, ok := oldTemplate["spec"].(map[string]any); ok {
			template["spec"] = podSpec(oldPod)
		}
		labels := child(child(template, "metadata"), "labels")
		if _, found := labels["controller"]; !found {
			labels["controller"] = controller
		}
	}
	name := fmt.Sprintf("%s-%s-job", instanceName, digest)
	app := fmt.Sprintf(`{{ labelValue (%s) %q "job" }}`, instanceWord, digest)
	return object("batch/v1", "Job", name, app, map[string]any{"akri.sh/once": "true"}, spec), nil
}

// digestOf returns six hexadecimal digits, as many as names of Instances have. If two specifications have the same, the
// Job is recreated, because they differ in an immutable field.
func digestOf(old map[string]any) (string, error) {
	data, err := json.Marshal(old) // with sorted keys
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:3]), nil
}

// selector returns what a Service selects besides what its author wrote. Only the Pods
// of a broker in these fields have the label controller. Those of
// instanceBrokerResources have Akri's own labels, and a Pod that the author creates
// has what its Service needs.
func (f Fields) selector(label, value string) map[string]any {
	selector := map[string]any{label: value}
	if f.broker() {
		selector["controller"] = controller
	}
	return selector
}

func service(old map[string]any, word string, selector map[string]any) map[string]any {
	spec := escape(old).(map[string]any)
	maps.Copy(child(spec, "selector"), selector)
	return object("v1", "Service", `{{ `+word+` }}-svc`, `{{ labelValue (`+word+`) "svc" }}`, map[string]any{}, spec)
}

// podSpec returns a copy in which everything is escaped except {{PLACEHOLDER}} in
// requests and limits.
func podSpec(old map[string]any) map[string]any {
	spec := escape(old).(map[string]any)
	for _, field := range []string{"containers", "initContainers"} {
		oldContainers, _ := old[field].([]any)
		containers, _ := spec[field].([]any)
		for i := range containers {
			for _, amounts := range []string{"requests", "limits"} {
				restorePlaceholder(
					dig(oldContainers[i], "resources", amounts),
					dig(containers[i], "resources", amounts))
			}
		}
	}
	return spec
}

const placeholder = "{{PLACEHOLDER}}"

func restorePlaceholder(old, amounts map[string]any) {
	if amount, found := old[placeholder]; found {
		delete(amounts, escapeText(placeholder))
		amounts[placeholder] = amount
	}
}

// pin adds the node to every term of the required node affinity. A node has to
// match one of the terms, so it can only be this one.
func pin(spec map[string]any) {
	required := child(child(child(spec, "affinity"), "nodeAffinity"), "requiredDuringSchedulingIgnoredDuringExecution")
	here := map[string]any{"key": "metadata.name", "operator": "In", "values": []any{"{{ NODE }}"}}
	terms, _ := required["nodeSelectorTerms"].([]any)
	if len(terms) == 0 {
		required["nodeSelectorTerms"] = []any{map[string]any{"matchFields": []any{here}}}
	}
	for _, term := range terms {
		fields, ok := term.(map[string]any)
		if !ok || len(fields) == 0 {
			continue // the API server rejects the first and matches no node for the second
		}
		matches, _ := fields["matchFields"].([]any)
		fields["matchFields"] = append(matches, here)
	}
}

// child returns the map under a key, and adds one if there is none.
func child(of map[string]any, key string) map[string]any {
	if m, ok := of[key].(map[string]any); ok {
		return m
	}
	m := map[string]any{}
	of[key] = m
	return m
}

// dig returns the map at the end of keys, or nil.
func dig(value any, keys ...string) map[string]any {
	m, _ := value.(map[string]any)
	for _, key := range keys {
		m, _ = m[key].(map[string]any)
	}
	return m
}

// escape returns a copy of a value that a template renders to the value itself.
func escape(value any) any {
	switch v := value.(type) {
	case string:
		return escapeText(v)
	case []any:
		list := make([]any, len(v))
		for i, element := range v {
			list[i] = escape(element)
		}
		return list
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, element := range v {
			m[escapeText(key)] = escape(element)
		}
		return m
	}
	return value
}

func escapeText(s string) string { return strings.ReplaceAll(s, "{{", `{{ "{{" }}`) }
