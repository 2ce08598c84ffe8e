package convert

import (
	"errors"
	"fmt"
	"strings"
)

// Fields are the old fields of a Configuration's spec, as decoded from JSON; nil if
// not set.
type Fields struct {
	BrokerPodSpec            map[string]any
	BrokerJobSpec            map[string]any
	InstanceServiceSpec      map[string]any
	ConfigurationServiceSpec map[string]any
	// Generation is the Configuration's metadata.generation. It is part of a Job's
	// name, so that Jobs run again when the Configuration changes.
	Generation int64
}

// Resource is a template and the old field that it was converted from.
type Resource struct {
	From     string // as in brokerSpec.brokerPodSpec
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

// BrokerResources converts old fields. It neither changes nor keeps them.
func BrokerResources(f Fields) (Lists, error) {
	var lists Lists
	if f.BrokerPodSpec != nil && f.BrokerJobSpec != nil {
		return lists, errors.New("brokerSpec: brokerPodSpec and brokerJobSpec exclude each other; keep one")
	}
	if f.BrokerPodSpec != nil {
		lists.Instance = append(lists.Instance, Resource{"brokerSpec.brokerPodSpec", pod(f.BrokerPodSpec)})
	}
	if f.BrokerJobSpec != nil {
		lists.Instance = append(lists.Instance, Resource{"brokerSpec.brokerJobSpec", job(f.BrokerJobSpec, f.Generation)})
	}
	if f.InstanceServiceSpec != nil {
		template := service(f.InstanceServiceSpec, instanceWord, "akri.sh/instance", "{{ INSTANCE_NAME }}")
		lists.Instance = append(lists.Instance, Resource{"instanceServiceSpec", template})
	}
	if f.ConfigurationServiceSpec != nil {
		template := service(f.ConfigurationServiceSpec, configurationWord, "akri.sh/configuration", "{{ CONFIGURATION_NAME }}")
		lists.Configuration = append(lists.Configuration, Resource{"configurationServiceSpec", template})
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
	withinCapacity = `{{ has NODE (slice NODES 0 (min CAPACITY (len NODES))) }}`
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

func job(old map[string]any, generation int64) map[string]any {
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
	name := fmt.Sprintf("%s-%d-job", instanceName, generation)
	app := fmt.Sprintf(`{{ labelValue (%s) "%d" "job" }}`, instanceWord, generation)
	return object("batch/v1", "Job", name, app, map[string]any{"akri.sh/once": "true"}, spec)
}

func service(old map[string]any, word, label, value string) map[string]any {
	spec := escape(old).(map[string]any)
	selector := child(spec, "selector")
	selector["controller"] = controller
	selector[label] = value
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
