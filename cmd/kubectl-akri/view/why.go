package view

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/advice"
	"akri.sh/akri/internal/finding"
	"akri.sh/akri/internal/text"
)

// Facts is what is known about an object that is explained: a Pod, an Instance or a
// Configuration, the first of them that is not nil.
type Facts struct {
	// Created is what was asked about if it is another object that Akri created, for the
	// Instance or Configuration. For a Pod, it says what Akri created it for.
	Created *Made `json:"created,omitempty"`

	Pod      *corev1.Pod  `json:"pod,omitempty"`
	Instance *v0.Instance `json:"instance,omitempty"`
	// Configuration is also that of an Instance; nil if it does not exist.
	Configuration *v0.Configuration `json:"configuration,omitempty"`
	// Instances are those of a Configuration that is explained, sorted by name.
	Instances []v0.Instance `json:"instances,omitempty"`

	// Requested are the facts about each Instance and Configuration whose resource a Pod
	// requests. Unknown are resources that it requests, and that belong to neither.
	Requested []*Facts `json:"requested,omitempty"`
	Unknown   []string `json:"unknownResources,omitempty"`

	// Slots are those of the Instance or of the Configuration's, and Request the lines with which
	// a container requests it, or any of them. [Facts.Conclude] sets both.
	Slots   []Slot `json:"slots,omitempty"`
	Request string `json:"request,omitempty"`

	// Pods request one of the devices, by the Instance's resource or by the
	// Configuration's. AllPods reports whether all namespaces were searched.
	Pods    []corev1.Pod `json:"pods,omitempty"`
	AllPods bool         `json:"allNamespacesSearched"`
	// System is Akri itself; nil if nothing is known about it.
	System *System `json:"-"`
	// Events are those of the explained object and, for an Instance, of its Pods; for an
	// Instance or a Configuration, also those of its objects.
	Events []corev1.Event `json:"events,omitempty"`
	Now    time.Time      `json:"-"`

	// Unread lists what the user has no permission to read, so a cause may be missing.
	Unread []string `json:"unread,omitempty"`
	// Findings are the problems that [Facts.Conclude] has found.
	Findings []finding.Mistake `json:"findings"`
}

// Made is an object that Akri created for an Instance or a Configuration.
type Made struct {
	// Object is its kind and name.
	Object string `json:"object,omitempty"`
	State  string `json:"state,omitempty"`
	// For is what it was created for.
	For   string   `json:"for"`
	Notes []string `json:"notes,omitempty"`
	// Selector is the selector of a Service; nil if it has none, or if the object is
	// not a Service. Selected are the Pods that it selects.
	Selector map[string]string `json:"selector,omitempty"`
	Selected []corev1.Pod      `json:"selected,omitempty"`
}

// Bounds of what a page lists. Of Events, it has the latest.
const (
	maxEvents    = 8
	maxInstances = 20
)

// Text prints the state of the explained object, the problems found and their remedies.
func (f *Facts) Text(out io.Writer) error {
	var b strings.Builder
	switch {
	case f.Pod != nil:
		f.writePod(&b)
	case f.Instance != nil:
		f.writeCreated(&b)
		f.writeInstance(&b)
	default:
		f.writeCreated(&b)
		f.writeConfiguration(&b)
	}
	f.writeEvents(&b)
	b.WriteString("\nConclusion:\n")
	writeFindings(&b, f.Findings)
	if len(f.Findings) == 0 {
		fmt.Fprintf(&b, "  No problem found: %s.\n", f.health())
	}
	return printed(out, b.String())
}

// writeFindings prints problems with their remedies.
func writeFindings(b *strings.Builder, findings []finding.Mistake) {
	for _, found := range findings {
		fmt.Fprintf(b, "  %s\n", indented(found.Cause, 4))
		if found.Hint != "" {
			fmt.Fprintf(b, "    → %s\n", indented(found.Hint, 6))
		}
	}
}

// writeCreated prints the object that was asked about. The page of its parent follows.
func (f *Facts) writeCreated(b *strings.Builder) {
	made := f.Created
	if made == nil {
		return
	}
	fmt.Fprintf(b, "%s  %s\n  for        %s\n", made.Object, made.State, made.For)
	for i := range made.Selected {
		pod := &made.Selected[i]
		fmt.Fprintf(b, "  selects    Pod %s  %s  %s\n", pod.Name, nodeText(pod), PodState(pod))
	}
	if made.Selector != nil && len(made.Selected) == 0 {
		labels := metav1.FormatLabelSelector(metav1.SetAsLabelSelector(made.Selector))
		fmt.Fprintf(b, "  selects    no Pod: none has the labels %s\n", strings.ReplaceAll(labels, ",", ", "))
	}
	for _, note := range made.Notes {
		fmt.Fprintf(b, "  note       %s\n", note)
	}
	b.WriteByte('\n')
}

func (f *Facts) writeInstance(b *strings.Builder) {
	instance := f.Instance
	handler := ", which does not exist"
	if f.Configuration != nil {
		handler = ", handler " + f.Configuration.Spec.DiscoveryHandler.Name
	}
	nodes := slices.Clone(instance.Spec.Nodes)
	for i, name := range nodes {
		if complaint := f.System.nodeProblem(name); complaint != "" {
			nodes[i] += " (" + strings.TrimPrefix(complaint, "is ") + ")"
		}
	}
	fmt.Fprintf(b, "Instance %s/%s  %s\n", instance.Namespace, instance.Name, readiness(instance.Status.Conditions))
	if name := v0.DisplayName(instance); name != "" {
		fmt.Fprintf(b, "  device     %s\n", text.OneLine(name))
	}
	fmt.Fprintf(b, "  found by   Configuration %s%s\n", instance.Spec.ConfigurationName, handler)
	fmt.Fprintf(b, "  seen from  %s\n", cmp.Or(strings.Join(nodes, ", "), "no node"))
	f.writeSlots(b)
	f.writeConditions(b)
	f.writeObjects(b)
	if len(f.Pods) > 0 {
		b.WriteString("\nPods that request the device:\n")
	}
	for i := range f.Pods {
		pod := &f.Pods[i]
		anyDevice := ""
		if !Requests(pod, v0.ResourceName(instance.Name)) {
			anyDevice = ", for any of the Configuration's devices"
		}
		fmt.Fprintf(b, "  %s  %s%s  %s\n", f.podName(pod), nodeText(pod), anyDevice, PodState(pod))
	}
}

func (f *Facts) writeConfiguration(b *strings.Builder) {
	c := f.Configuration
	devices := "none"
	if n := len(f.Instances); n > 0 {
		ready := 0
		for i := range f.Instances {
			if meta.IsStatusConditionTrue(f.Instances[i].Status.Conditions, v0.ConditionReady) {
				ready++
			}
		}
		devices = fmt.Sprintf("%s, %d ready", counted(n, "Instance"), ready)
	}
	fmt.Fprintf(b, "Configuration %s/%s  %s\n", c.Namespace, c.Name, readiness(c.Status.Conditions))
	fmt.Fprintf(b, "  handler    %s\n", c.Spec.DiscoveryHandler.Name)
	fmt.Fprintf(b, "  devices    %s\n", devices)
	fmt.Fprintf(b, "  resource   %s, for any of the devices: %s\n", v0.ResourceName(c.Name), usageText(f.Instances...))
	f.writeConditions(b)
	if len(f.Instances) > 0 {
		b.WriteString("\nDevices:\n")
	}
	for i, instance := range f.Instances {
		if i == maxInstances {
			fmt.Fprintf(b, "  and %d more: kubectl akri tree -n %s %s\n", len(f.Instances)-i, c.Namespace, c.Name)
			break
		}
		fmt.Fprintf(b, "  Instance %s  on %s  %s, %s\n", called(&instance), cmp.Or(strings.Join(instance.Spec.Nodes, ", "), "no node"),
			readiness(instance.Status.Conditions), usageText(instance))
	}
	f.writeObjects(b)
	own := f.explainedPods()
	if len(own) > 0 {
		fmt.Fprintf(b, "\nPods that request %s:\n", v0.ResourceName(c.Name))
	}
	for i := range own {
		fmt.Fprintf(b, "  %s  %s  %s\n", f.podName(&own[i]), nodeText(&own[i]), PodState(&own[i]))
	}
}

func (f *Facts) writePod(b *strings.Builder) {
	fmt.Fprintf(b, "Pod %s/%s  %s  %s\n", f.Pod.Namespace, f.Pod.Name, nodeText(f.Pod), PodState(f.Pod))
	if f.Created != nil {
		fmt.Fprintf(b, "  for        %s\n", f.Created.For)
	}
	requested := advice.Requested(&f.Pod.Spec)
	for _, resource := range slices.Sorted(maps.Keys(requested)) {
		owner := ""
		if slices.Contains(f.Unknown, resource) {
			owner = ", which does not exist"
		}
		for _, one := range f.Requested {
			switch p := one.parent(); {
			case v0.ResourceName(p.meta.Name) != resource:
			case one.Instance != nil:
				owner = fmt.Sprintf(", Instance %s/%s: %s", p.meta.Namespace, p.meta.Name, usageText(*one.Instance))
			default:
				owner = fmt.Sprintf(", any device of Configuration %s/%s: %s", p.meta.Namespace, p.meta.Name, usageText(one.Instances...))
			}
		}
		fmt.Fprintf(b, "  requests   %d of %s%s\n", requested[resource], resource, owner)
	}
	if len(requested) == 0 {
		b.WriteString("  requests   no device\n")
	}
	for _, one := range f.Requested {
		if one.Instance != nil {
			one.writeSlots(b)
			continue
		}
		for _, holder := range one.holders() {
			fmt.Fprintf(b, "  slot       %s\n", holder)
		}
	}
	for _, note := range f.notes() {
		fmt.Fprintf(b, "  note       %s\n", note)
	}
}

// parent is what an Instance and a Configuration have in common.
type parent struct {
	kind       string
	meta       *metav1.ObjectMeta
	conditions []metav1.Condition
	objects    []v0.ResourceStatus
}

func (f *Facts) parent() parent {
	if f.Instance != nil {
		return parent{"Instance", &f.Instance.ObjectMeta, f.Instance.Status.Conditions, f.Instance.Status.Resources}
	}
	return parent{"Configuration", &f.Configuration.ObjectMeta, f.Configuration.Status.Conditions, f.Configuration.Status.Resources}
}

// Recorded returns the UID of the Instance or Configuration, and the objects that Akri
// created for it.
func (f *Facts) Recorded() (types.UID, []v0.ResourceStatus) {
	return f.parent().meta.UID, f.parent().objects
}

// Resources returns the resources with which Pods can request the devices.
func (f *Facts) Resources() []string {
	if f.Instance != nil {
		return []string{v0.ResourceName(f.Instance.Name), v0.ResourceName(f.Instance.Spec.ConfigurationName)}
	}
	resources := []string{v0.ResourceName(f.Configuration.Name)}
	for i := range f.Instances {
		resources = append(resources, v0.ResourceName(f.Instances[i].Name))
	}
	return resources
}

// Devices returns the Instance, or those of the Configuration.
func (f *Facts) Devices() []v0.Instance {
	if f.Instance != nil {
		return []v0.Instance{*f.Instance}
	}
	return f.Instances
}

// podName returns a Pod's name as named does.
func (f *Facts) podName(pod *corev1.Pod) string { return f.named(pod.Namespace, pod.Name) }

// named returns the name of a Pod, with its namespace if that is not the explained object's.
func (f *Facts) named(namespace, pod string) string {
	if f.Pod != nil && f.Pod.Namespace == namespace || f.Pod == nil && f.parent().meta.Namespace == namespace {
		return "Pod " + pod
	}
	return "Pod " + namespace + "/" + pod
}

// usageText describes how many slots of devices are free.
func usageText(instances ...v0.Instance) string {
	free, all := 0, 0
	for i := range instances {
		free += int(v0.FreeSlots(&instances[i]))
		all += int(instances[i].Spec.Capacity)
	}
	return fmt.Sprintf("%d of %s free", free, counted(all, "slot"))
}

func (f *Facts) writeConditions(b *strings.Builder) {
	b.WriteString("\nConditions:\n")
	conditions := f.parent().conditions
	for _, condition := range conditions {
		fmt.Fprintf(b, "  %s=%s  %s: %s\n", condition.Type, condition.Status, condition.Reason, indented(condition.Message, 6))
	}
	if len(conditions) == 0 {
		b.WriteString("  none yet\n")
	}
}

func (f *Facts) writeObjects(b *strings.Builder) {
	objects := f.parent().objects
	if len(objects) > 0 {
		b.WriteString("\nObjects:\n")
	}
	for _, object := range objects {
		fmt.Fprintf(b, "  %s %s  %s\n", kindOf(object), object.Name, ResourceState(object))
	}
}

func (f *Facts) writeEvents(b *strings.Builder) {
	if len(f.Events) > 0 {
		b.WriteString("\nLatest events:\n")
	}
	events := slices.Clone(f.Events)
	slices.SortStableFunc(events, func(x, y corev1.Event) int {
		return cmp.Or(eventTime(&x).Compare(eventTime(&y)), cmp.Compare(x.Name, y.Name))
	})
	for _, event := range events[max(0, len(events)-maxEvents):] {
		fmt.Fprintf(b, "  %s ago  %s %s  %s: %s\n", duration.HumanDuration(f.Now.Sub(eventTime(&event))),
			event.InvolvedObject.Kind, event.InvolvedObject.Name, event.Reason, indented(strings.TrimSpace(event.Message), 6))
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
