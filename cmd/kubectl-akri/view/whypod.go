package view

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	v0 "akri.sh/akri/api/v0"
)

// PodFacts holds a Pod and the devices that it requests.
type PodFacts struct {
	Pod corev1.Pod
	// Origin is what it was created for; empty if Akri did not create it.
	Origin string
	// Instances and Configurations are those whose resources the Pod requests.
	Instances      []*Facts
	Configurations []*ConfigurationFacts
	// Unknown are resources that the Pod requests, and that belong to neither.
	Unknown []string
	// AllPods reports whether the Pods of all namespaces were searched.
	AllPods bool
	Events  []corev1.Event
	Now     time.Time
}

// WhyPod prints the devices that a Pod requests, and why it does not run.
func WhyPod(out io.Writer, f *PodFacts) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Pod %s/%s  %s  %s\n", f.Pod.Namespace, f.Pod.Name, nodeText(&f.Pod), PodState(&f.Pod))
	if f.Origin != "" {
		fmt.Fprintf(&b, "  for        %s\n", f.Origin)
	}
	requested := Requested(&f.Pod)
	for _, resource := range slices.Sorted(maps.Keys(requested)) {
		fmt.Fprintf(&b, "  requests   %d of %s%s\n", requested[resource], resource, f.resourceText(resource))
	}
	if len(requested) == 0 {
		b.WriteString("  requests   no device\n")
	}
	for _, instance := range f.Instances {
		for _, slot := range instance.slots() {
			fmt.Fprintf(&b, "  slot       %s  %s%s\n", slot.name, ownerText(slot.value, instance.Instance.Spec.ConfigurationName),
				slot.usersText(instance))
		}
	}
	for _, configuration := range f.Configurations {
		for _, holder := range configuration.holders() {
			fmt.Fprintf(&b, "  slot       %s\n", holder)
		}
	}
	for _, note := range f.notes() {
		fmt.Fprintf(&b, "  note       %s\n", note)
	}
	writeEvents(&b, f.Events, f.Now)
	writeConclusion(&b, f.conclude())
	return printed(out, b.String())
}

// resourceText says what a resource belongs to.
func (f *PodFacts) resourceText(resource string) string {
	for _, one := range f.Instances {
		if v0.ResourceName(one.Instance.Name) == resource {
			return fmt.Sprintf(", Instance %s/%s: %s", one.Instance.Namespace, one.Instance.Name, usageText(&one.Instance))
		}
	}
	for _, one := range f.Configurations {
		if one.resource() == resource {
			return fmt.Sprintf(", any device of Configuration %s/%s: %s", one.Configuration.Namespace, one.Configuration.Name, one.slotsText())
		}
	}
	return ", which does not exist"
}

func (f *PodFacts) conclude() []conclusion {
	var findings []conclusion
	for _, resource := range f.Unknown {
		findings = append(findings, findingf("correct the name, or check why the device is not found: kubectl akri tree lists the devices",
			"%s is requested, but there is no Instance or Configuration %s.", resource, strings.TrimPrefix(resource, v0.Domain+"/"))...)
	}
	if !terminated(&f.Pod) {
		for _, instance := range f.Instances {
			for _, rule := range []func(*Facts) []conclusion{instanceDeleted, deviceNotSeen, nodeNotReady} {
				findings = append(findings, rule(instance)...)
			}
		}
	}
	name := podName(&f.Pod, f.Pod.Namespace)
	findings = append(findings, f.unschedulable(name)...)
	findings = append(findings, failedPod(&f.Pod, name)...)
	findings = append(findings, waitingPod(&f.Pod, name)...)
	if len(findings) > 0 {
		return findings
	}
	if f.Pod.Status.Phase == corev1.PodPending {
		return findingf("", "No problem found: %s is about to start.", name)
	}
	return findingf("", "No problem found: %s is %s.", name, f.Pod.Status.Phase)
}

// unschedulable explains which of the requested devices the scheduler does not find.
func (f *PodFacts) unschedulable(name string) []conclusion {
	message, found := unschedulable(&f.Pod)
	if !found {
		return nil
	}
	var findings []conclusion
	for _, one := range f.Instances {
		if resource := v0.ResourceName(one.Instance.Name); strings.Contains(message, "Insufficient "+resource) {
			findings = append(findings, one.slotShortage(&f.Pod, resource, message))
		}
	}
	for _, one := range f.Configurations {
		if strings.Contains(message, "Insufficient "+one.resource()) {
			findings = append(findings, one.shortage(&f.Pod, name, message))
		}
	}
	if len(findings) == 0 && len(f.Unknown) == 0 {
		return findingf("", "%s cannot be scheduled: %s", name, message)
	}
	return findings
}

// ObjectFacts holds an object that Akri created for an Instance or a Configuration.
type ObjectFacts struct {
	// Object is its kind and name.
	Object string
	State  string
	// Origin is what it was created for.
	Origin string
	Notes  []string
	// Selector is the selector of a Service; nil if it has none, or if the object is
	// not a Service. Selected are the Pods that it selects.
	Selector map[string]string
	Selected []corev1.Pod
}

// WhyObject prints the state of an object. The page of its parent follows.
func WhyObject(out io.Writer, f *ObjectFacts) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s\n  for        %s\n", f.Object, f.State, f.Origin)
	for i := range f.Selected {
		pod := &f.Selected[i]
		fmt.Fprintf(&b, "  selects    Pod %s  %s  %s\n", pod.Name, nodeText(pod), PodState(pod))
	}
	if f.Selector != nil && len(f.Selected) == 0 {
		labels := make([]string, 0, len(f.Selector))
		for _, key := range slices.Sorted(maps.Keys(f.Selector)) {
			labels = append(labels, key+"="+f.Selector[key])
		}
		fmt.Fprintf(&b, "  selects    no Pod: none has the labels %s\n", strings.Join(labels, ", "))
	}
	for _, note := range f.Notes {
		fmt.Fprintf(&b, "  note       %s\n", note)
	}
	b.WriteString("\n")
	return printed(out, b.String())
}
