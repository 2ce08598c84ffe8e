package view

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	v0 "akri.sh/akri/api/v0"
)

// Facts holds an Instance and the objects related to it.
type Facts struct {
	Instance v0.Instance
	// Configuration is nil if it does not exist.
	Configuration *v0.Configuration
	// Pods that request the device, by the Instance's resource or by the
	// Configuration's. AllPods reports whether all namespaces were searched.
	Pods    []corev1.Pod
	AllPods bool
	// Nodes holds the nodes that see the device, by name; nil if they may not be
	// read. A node that does not exist is missing.
	Nodes map[string]corev1.Node
	// Events are those of the Instance, its Pods and its objects.
	Events []corev1.Event
	Now    time.Time
}

// maxEvents limits the Events that are shown to the latest.
const maxEvents = 8

// Why prints the state of an Instance, the problems found and their remedies.
func Why(out io.Writer, f *Facts) error {
	var b strings.Builder
	instance := &f.Instance
	fmt.Fprintf(&b, "Instance %s/%s  %s\n", instance.Namespace, instance.Name, readiness(instance.Status.Conditions))
	fmt.Fprintf(&b, "  found by   Configuration %s%s\n", instance.Spec.ConfigurationName, handlerText(f.Configuration))
	fmt.Fprintf(&b, "  seen from  %s\n", f.nodesText())
	for _, slot := range f.slots() {
		fmt.Fprintf(&b, "  slot       %s  %s%s\n", slot.name, ownerText(slot.value, instance.Spec.ConfigurationName), slot.usersText(f))
	}
	writeConditions(&b, instance.Status.Conditions)
	writeObjects(&b, instance.Status.Resources)
	f.writePods(&b)
	writeEvents(&b, f.Events, f.Now)
	writeConclusion(&b, conclude(f))
	return printed(out, b.String())
}

func handlerText(configuration *v0.Configuration) string {
	if configuration == nil {
		return ", which does not exist"
	}
	return ", handler " + configuration.Spec.DiscoveryHandler.Name
}

func (f *Facts) nodesText() string {
	if len(f.Instance.Spec.Nodes) == 0 {
		return "no node"
	}
	texts := make([]string, len(f.Instance.Spec.Nodes))
	for i, name := range f.Instance.Spec.Nodes {
		texts[i] = name
		if complaint := f.nodeComplaint(name); complaint != "" {
			texts[i] += " (" + complaint + ")"
		}
	}
	return strings.Join(texts, ", ")
}

// nodeComplaint returns the problem of a node, or "" if none is known.
func (f *Facts) nodeComplaint(name string) string {
	if f.Nodes == nil {
		return ""
	}
	node, exists := f.Nodes[name]
	if !exists {
		return "does not exist"
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
			return "not Ready"
		}
	}
	return ""
}

// slotView is one of the Instance's slots and its owner.
type slotView struct {
	name  string
	value v0.SlotOwner
	owner v0.Owner
}

func (f *Facts) slots() []slotView {
	var slots []slotView
	for i := range int(f.Instance.Spec.Capacity) {
		name := v0.SlotName(f.Instance.Name, i)
		value := f.Instance.Spec.DeviceUsage[name]
		owner, _ := v0.ParseOwner(string(value)) // an invalid value is shown unchanged
		slots = append(slots, slotView{name, value, owner})
	}
	return slots
}

// usersText names the Pods on the slot's node that request the device. Only the
// kubelet knows which of them uses which slot.
func (s slotView) usersText(f *Facts) string {
	if s.owner.Free() {
		return ""
	}
	if users := f.usersOf(s); len(users) > 0 {
		return "  by " + strings.Join(users, " or ")
	}
	return ""
}

// usersOf returns the Pods on a slot's node that have not terminated and request the
// resource through which the slot was allocated.
func (f *Facts) usersOf(s slotView) []string {
	resource := v0.ResourceName(f.Instance.Name)
	if s.owner.VirtualID != "" {
		resource = v0.ResourceName(f.Instance.Spec.ConfigurationName)
	}
	var users []string
	for i := range f.Pods {
		if pod := &f.Pods[i]; pod.Spec.NodeName == s.owner.Node && !terminated(pod) && Requests(pod, resource) {
			users = append(users, f.podName(pod))
		}
	}
	return users
}

func (f *Facts) podName(pod *corev1.Pod) string { return podName(pod, f.Instance.Namespace) }

func writeObjects(b *strings.Builder, resources []v0.ResourceStatus) {
	if len(resources) == 0 {
		return
	}
	b.WriteString("\nObjects:\n")
	for _, resource := range resources {
		fmt.Fprintf(b, "  %s %s  %s\n", resource.Kind, resource.Name, resourceState(resource))
	}
}

func (f *Facts) writePods(b *strings.Builder) {
	if len(f.Pods) == 0 {
		return
	}
	b.WriteString("\nPods that request the device:\n")
	for i := range f.Pods {
		pod := &f.Pods[i]
		anyDevice := ""
		if !Requests(pod, v0.ResourceName(f.Instance.Name)) {
			anyDevice = ", for any of the Configuration's devices"
		}
		fmt.Fprintf(b, "  %s  %s%s  %s\n", f.podName(pod), nodeText(pod), anyDevice, PodState(pod))
	}
}

// writeEvents prints the latest events.
func writeEvents(b *strings.Builder, all []corev1.Event, now time.Time) {
	if len(all) == 0 {
		return
	}
	b.WriteString("\nLatest events:\n")
	events := slices.Clone(all)
	slices.SortStableFunc(events, func(x, y corev1.Event) int {
		return cmp.Or(eventTime(&x).Compare(eventTime(&y)), cmp.Compare(x.Name, y.Name))
	})
	for _, event := range events[max(0, len(events)-maxEvents):] {
		fmt.Fprintf(b, "  %s ago  %s %s  %s: %s\n", duration.HumanDuration(now.Sub(eventTime(&event))),
			event.InvolvedObject.Kind, event.InvolvedObject.Name, event.Reason, indented(strings.TrimSpace(event.Message), 6))
	}
}

// writeConditions prints conditions, one per line.
func writeConditions(b *strings.Builder, conditions []metav1.Condition) {
	b.WriteString("\nConditions:\n")
	for _, condition := range conditions {
		fmt.Fprintf(b, "  %s=%s  %s: %s\n", condition.Type, condition.Status, condition.Reason, indented(condition.Message, 6))
	}
	if len(conditions) == 0 {
		b.WriteString("  none yet\n")
	}
}

// writeConclusion prints findings with their remedies.
func writeConclusion(b *strings.Builder, findings []conclusion) {
	b.WriteString("\nConclusion:\n")
	for _, finding := range findings {
		fmt.Fprintf(b, "  %s\n", indented(finding.cause, 4))
		if finding.hint != "" {
			fmt.Fprintf(b, "    → %s\n", indented(finding.hint, 6))
		}
	}
}

// eventTime returns when an Event was last observed; the field depends on its client.
func eventTime(event *corev1.Event) time.Time {
	switch {
	case event.Series != nil && !event.Series.LastObservedTime.IsZero():
		return event.Series.LastObservedTime.Time
	case !event.LastTimestamp.IsZero():
		return event.LastTimestamp.Time
	case !event.EventTime.IsZero():
		return event.EventTime.Time
	}
	return event.CreationTimestamp.Time
}
