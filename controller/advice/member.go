package advice

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"akri.sh/akri/templating"
)

// Member is an object among those of one Configuration that [Together] compares.
type Member struct {
	templating.Object
	source map[string]any // nil for one of Akri's old fields
	values templating.Values
	kind   schema.GroupKind
	fields
	pods []pods
	// device and node are those that it was rendered for, empty if it is for all.
	device, node string
	// selector is what it selects Pods by.
	selector map[string]any
	// count Pods run until the object is deleted.
	count int64
}

// pods are Pods made from one template.
type pods struct {
	path templating.Path
	corev1.PodTemplateSpec
}

// fields are those of Services and of Kubernetes' workloads.
type fields struct {
	Metadata struct{ Namespace string } `json:"metadata"`
	Spec     struct {
		Type      string               `json:"type"`
		ClusterIP string               `json:"clusterIP"`
		Ports     []corev1.ServicePort `json:"ports"`
		Selector  map[string]any       `json:"selector"`
		Replicas  *int64               `json:"replicas"`
		Strategy  strategy             `json:"strategy"`
		Update    strategy             `json:"updateStrategy"`
	} `json:"spec"`
}

type strategy struct {
	Type          string `json:"type"`
	RollingUpdate struct {
		MaxSurge       *intstr.IntOrString `json:"maxSurge"`
		MaxUnavailable *intstr.IntOrString `json:"maxUnavailable"`
	} `json:"rollingUpdate"`
}

// read reads the fields, unless a type is wrong, which others report. A DaemonSet has one Pod
// at least; Jobs, and Pods that do not restart, end.
func (m *Member) read() {
	switch m.device = m.values.Instance.Name; m.Directives.ForEach {
	case templating.ForEachNode:
		m.node = m.Origin.Element
	case templating.ForEachInstance:
		m.device = m.Origin.Element
	}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(m.Content, &m.fields) != nil {
		return
	}
	m.Metadata.Namespace = cmp.Or(m.Metadata.Namespace, m.values.Namespace)
	switch spec := &m.Spec; {
	case m.isService() && spec.Type != string(corev1.ServiceTypeExternalName):
		m.selector = spec.Selector
	case m.kind.Group == "apps" && spec.Selector["matchExpressions"] == nil:
		m.selector, _ = spec.Selector["matchLabels"].(map[string]any)
	}
	ends := func(p pods) bool {
		return cmp.Or(p.Spec.RestartPolicy, corev1.RestartPolicyAlways) != corev1.RestartPolicyAlways
	}
	if m.count = 1; m.Spec.Replicas != nil {
		m.count = *m.Spec.Replicas
	}
	if m.kind.Group == "batch" || slices.ContainsFunc(m.pods, ends) {
		m.count = 0
	}
}

func (m *Member) isService() bool { return m.kind == schema.GroupKind{Kind: "Service"} }

// name returns the template as its author knows it.
func (m *Member) name() string {
	if m.source == nil {
		return "brokerSpec"
	}
	return m.Origin.Template().String()
}

// at returns a warning about a field of the member.
func (m *Member) at(field templating.Path, cause, hint string) templating.Diagnostic {
	found := warning(field, cause, hint)
	found.Origin = m.Origin.Template()
	return found
}

// Together returns the warnings about objects of one Configuration that get in each other's
// way: those of two devices at least, so that what is equal for all devices is seen.
func Together(members []Member) (warnings templating.Diagnostics) {
	warnings = ofSlots(members)
	judged := map[templating.Origin]int{}
	for i := range members {
		template := members[i].Origin.Template()
		if judged[template]++; judged[template] <= 8 { // with more devices, they are alike
			warnings = append(warnings, members[i].ofSelector(members)...)
		}
	}
	return warnings
}
