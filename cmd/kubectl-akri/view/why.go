package view

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	v0 "akri.sh/akri/api/v0"
)

// Facts are what is known about an Instance and what it touches.
type Facts struct {
	Instance v0.Instance
	// Configuration is nil if it does not exist.
	Configuration *v0.Configuration
	// Pods that ask for the device, by the Instance's resource or by the
	// Configuration's, in all namespaces if AllPods is set.
	Pods    []corev1.Pod
	AllPods bool
	// Nodes by name, of those that see the device or hold a slot; nil if they may
	// not be read. One that does not exist is missing.
	Nodes map[string]corev1.Node
	// Events of the Instance, its Pods and its objects.
	Events []corev1.Event
	Now    time.Time
}

// mostEvents is how many of the last events are shown.
const mostEvents = 8

// Why prints a page about an Instance that ends in what is wrong and what to do.
func Why(out io.Writer, f *Facts) error {
	var b strings.Builder
	instance := &f.Instance
	fmt.Fprintf(&b, "Instance %s/%s  %s\n", instance.Namespace, instance.Name, readiness(instance.Status.Conditions))
	fmt.Fprintf(&b, "  found by   Configuration %s%s\n", instance.Spec.ConfigurationName, handlerText(f.Configuration))
	fmt.Fprintf(&b, "  seen from  %s\n", f.nodesText())
	for _, slot := range f.slots() {
		fmt.Fprintf(&b, "  slot       %s  %s%s\n", slot.name, ownerText(slot.value), slot.usersText(f))
	}
	b.WriteString("\nConditions:\n")
	for _, condition := range instance.Status.Conditions {
		fmt.Fprintf(&b, "  %s=%s  %s: %s\n", condition.Type, condition.Status, condition.Reason, indented(condition.Message, 6))
	}
	if len(instance.Status.Conditions) == 0 {
		b.WriteString("  none yet\n")
	}
	writeObjects(&b, instance.Status.Resources)
	f.writePods(&b)
	f.writeEvents(&b)
	b.WriteString("\nConclusion:\n")
	for _, finding := range Conclude(f) {
		fmt.Fprintf(&b, "  %s\n", indented(finding.What, 4))
		if finding.Do != "" {
			fmt.Fprintf(&b, "    → %s\n", indented(finding.Do, 6))
		}
	}
	if _, err := io.WriteString(out, b.String()); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

func handlerText(configuration *v0.Configuration) string {
	if configuration == nil {
		return ", which does not exist"
	}
	return ", by handler " + configuration.Spec.DiscoveryHandler.Name
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

// nodeComplaint says what is wrong with a node; empty if nothing is known to be.
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

// slot is one of the Instance's slots and who holds it.
type slot struct {
	name  string
	value v0.SlotOwner
	owner v0.Owner
}

func (f *Facts) slots() []slot {
	var slots []slot
	for i := range int(f.Instance.Spec.Capacity) {
		name := v0.SlotName(f.Instance.Name, i)
		value := f.Instance.Spec.DeviceUsage[name]
		owner, _ := v0.ParseOwner(string(value)) // an unreadable one is shown as it is
		slots = append(slots, slot{name, value, owner})
	}
	return slots
}

// usersText names the Pods on the slot's node that ask for the device. Which of
// them has which slot, only the kubelet knows.
func (s slot) usersText(f *Facts) string {
	if s.owner.Free() {
		return ""
	}
	if users := f.usersOf(s); len(users) > 0 {
		return "  by " + strings.Join(users, " or ")
	}
	return ""
}

// usersOf are the running Pods on a slot's node that ask for what the slot was
// handed out as.
func (f *Facts) usersOf(s slot) []string {
	resource := v0.ResourceName(f.Instance.Name)
	if s.owner.VirtualID != "" {
		resource = v0.ResourceName(f.Instance.Spec.ConfigurationName)
	}
	var users []string
	for i := range f.Pods {
		if pod := &f.Pods[i]; pod.Spec.NodeName == s.owner.Node && !ended(pod) && AsksFor(pod, resource) {
			users = append(users, f.podName(pod))
		}
	}
	return users
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// podName is with the namespace if it is another than the Instance's.
func (f *Facts) podName(pod *corev1.Pod) string {
	if pod.Namespace == f.Instance.Namespace {
		return "Pod " + pod.Name
	}
	return "Pod " + pod.Namespace + "/" + pod.Name
}

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
	b.WriteString("\nPods that ask for the device:\n")
	for i := range f.Pods {
		pod := &f.Pods[i]
		node := pod.Spec.NodeName
		if node == "" {
			node = "no node yet"
		}
		whichever := ""
		if !AsksFor(pod, v0.ResourceName(f.Instance.Name)) {
			whichever = ", for any of the Configuration's devices"
		}
		fmt.Fprintf(b, "  %s  on %s%s  %s\n", f.podName(pod), node, whichever, podState(pod))
	}
}

// podState is a Pod's phase, or what keeps a container of it from running.
func podState(pod *corev1.Pod) string {
	if reason, _, _ := waitingContainer(pod); reason != "" {
		return reason
	}
	if pod.Status.Reason != "" {
		return pod.Status.Reason
	}
	return string(pod.Status.Phase)
}

func (f *Facts) writeEvents(b *strings.Builder) {
	if len(f.Events) == 0 {
		return
	}
	b.WriteString("\nLast events:\n")
	events := slices.Clone(f.Events)
	slices.SortStableFunc(events, func(x, y corev1.Event) int {
		return cmp.Or(eventTime(&x).Compare(eventTime(&y)), cmp.Compare(x.Name, y.Name))
	})
	for _, event := range events[max(0, len(events)-mostEvents):] {
		fmt.Fprintf(b, "  %s ago  %s %s  %s: %s\n", duration.HumanDuration(f.Now.Sub(eventTime(&event))),
			event.InvolvedObject.Kind, event.InvolvedObject.Name, event.Reason, indented(strings.TrimSpace(event.Message), 6))
	}
}

// eventTime is when an event happened last, in whichever of its fields that is.
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
