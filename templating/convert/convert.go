package convert

import (
	"errors"
	"fmt"
	"strings"
)

// Fields is the old fields of a Configuration's spec, as decoded from JSON; nil
// where there is none.
type Fields struct {
	BrokerPodSpec            map[string]any
	BrokerJobSpec            map[string]any
	InstanceServiceSpec      map[string]any
	ConfigurationServiceSpec map[string]any
	// Generation is the Configuration's metadata.generation, which is part of a
	// Job's name: a Configuration that changed has its Jobs run again.
	Generation int64
}

// Resource is a template and the old field that it is made of.
type Resource struct {
	From     string // as in brokerSpec.brokerPodSpec
	Template map[string]any
}

// Lists is the broker resources that say the same as the old fields.
type Lists struct {
	Instance      []Resource // for instanceBrokerResources
	Configuration []Resource // for configurationBrokerResources
}

// Templates is the templates of resources, in order.
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
		lists.Instance = append(lists.Instance, Resource{"instanceServiceSpec", service(f.InstanceServiceSpec, instanceWord, "akri.sh/instance", "{{ INSTANCE_NAME }}")})
	}
	if f.ConfigurationServiceSpec != nil {
		lists.Configuration = append(lists.Configuration, Resource{"configurationServiceSpec", service(f.ConfigurationServiceSpec, configurationWord, "akri.sh/configuration", "{{ CONFIGURATION_NAME }}")})
	}
	return lists, nil
}

// Names of objects. Akri writes dashes for the dots of Instances' names.
const (
	instanceWord      = `INSTANCE_NAME | replace "." "-"`
	configurationWord = `CONFIGURATION_NAME | replace "." "-"`
	instanceName      = `{{ ` + instanceWord + ` }}`
	// podName has the node in front when there can be several Pods. A single
	// node of a device that only one node can see is left out, as in Akri.
	podName = `{{ if or SHARED (gt (len NODES) 1) }}{{ NODE }}-{{ end }}` + instanceName + `-pod`
	podApp  = `{{ if or SHARED (gt (len NODES) 1) }}{{ labelValue NODE (` + instanceWord + `) "pod" }}{{ else }}{{ labelValue (` + instanceWord + `) "pod" }}{{ end }}`
	// withinCapacity holds for the first nodes, as many as the device has slots.
	withinCapacity = `{{ has NODE (slice NODES 0 (min CAPACITY (len NODES))) }}`
)

// object is what all converted objects have in common. The value of the label app
// is the name, cut to what a label may be.
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

// controller is the value of the label by which Akri's Services find brokers.
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
	if template, isMap := spec["template"].(map[string]any); isMap {
		oldTemplate := old["template"].(map[string]any)
		if oldPod, isMap := oldTemplate["spec"].(map[string]any); isMap {
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

// podSpec escapes all but {{PLACEHOLDER}} in requests and limits.
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

// pin adds the node to each of the terms of required node affinity, of which a
// node must fulfil one: so it must be this node in any case.
func pin(spec map[string]any) {
	required := child(child(child(spec, "affinity"), "nodeAffinity"), "requiredDuringSchedulingIgnoredDuringExecution")
	here := map[string]any{"key": "metadata.name", "operator": "In", "values": []any{"{{ NODE }}"}}
	terms, _ := required["nodeSelectorTerms"].([]any)
	if len(terms) == 0 {
		required["nodeSelectorTerms"] = []any{map[string]any{"matchFields": []any{here}}}
	}
	for _, term := range terms {
		fields, isMap := term.(map[string]any)
		if !isMap || len(fields) == 0 {
			continue // the API server says so, or it matches no node already
		}
		matches, _ := fields["matchFields"].([]any)
		fields["matchFields"] = append(matches, here)
	}
}

// child is the map under a key; it is made where there is none.
func child(of map[string]any, key string) map[string]any {
	if m, isMap := of[key].(map[string]any); isMap {
		return m
	}
	m := map[string]any{}
	of[key] = m
	return m
}

// dig is the map at the end of keys, or nil.
func dig(value any, keys ...string) map[string]any {
	m, _ := value.(map[string]any)
	for _, key := range keys {
		m, _ = m[key].(map[string]any)
	}
	return m
}

// escape copies a value so that a template yields it as it is.
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
