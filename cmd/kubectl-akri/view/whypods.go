package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/advice"
	"akri.sh/akri/internal/finding"
)

// explainedPods returns the Pod that is explained, those that request the Instance, or
// those that request any device of the Configuration. Those that request a certain one
// are on its page.
func (f *Facts) explainedPods() []corev1.Pod {
	switch {
	case f.Pod != nil:
		return []corev1.Pod{*f.Pod}
	case f.Instance != nil:
		return f.Pods
	}
	return slices.DeleteFunc(slices.Clone(f.Pods), func(pod corev1.Pod) bool {
		return !Requests(&pod, v0.ResourceName(f.Configuration.Name))
	})
}

// podsNotRunning explains why Pods are not scheduled, have failed or do not start.
func (f *Facts) podsNotRunning() []finding.Mistake {
	var findings []finding.Mistake
	pods := f.explainedPods()
	for i := range pods {
		pod := &pods[i]
		if message, found := unschedulable(pod); found {
			findings = append(findings, f.unschedulable(pod, message)...)
		}
		if !replaced(pod, f.Pods) {
			findings = append(findings, failedPod(pod, f.podName(pod))...)
		}
		findings = append(findings, waitingPod(pod, f.podName(pod))...)
	}
	return findings
}

// unschedulable explains which of the requested devices the scheduler does not find.
func (f *Facts) unschedulable(pod *corev1.Pod, message string) []finding.Mistake {
	requested := []*Facts{f}
	if f.Pod != nil {
		requested = f.Requested
	}
	var findings []finding.Mistake
	for _, one := range requested {
		resource := one.resourceFor(pod)
		if !strings.Contains(message, "Insufficient "+resource) {
			continue
		}
		waits := fmt.Sprintf("%s waits for ", one.podName(pod))
		switch {
		case one.Instance == nil:
			findings = append(findings, one.shortageOfDevices(waits, pod, message)...)
		case resource == v0.ResourceName(one.Instance.Name):
			findings = append(findings, one.shortageOfSlots(waits, pod, message)...)
		default:
			findings = append(findings, findingf("kubectl akri why configuration/"+one.Instance.Spec.ConfigurationName,
				"%s%s, any device of the Configuration: %s", waits, resource, message)...)
		}
	}
	if len(findings) == 0 && len(f.Unknown) == 0 {
		return findingf(schedulerRemedy, "%s cannot be scheduled: %s", f.podName(pod), message)
	}
	return findings
}

// schedulerRemedy is for what the scheduler says about nodes.
const schedulerRemedy = "the Pod must be able to run on a node that sees the device: check its nodeSelector, affinity, tolerations and " +
	"requests with kubectl describe node; after kubectl uncordon NODE, a node that was cordoned takes Pods again"

// resourceFor returns the resource with which a Pod requests the device or devices.
func (f *Facts) resourceFor(pod *corev1.Pod) string {
	if f.Instance == nil {
		return v0.ResourceName(f.Configuration.Name)
	}
	if own := v0.ResourceName(f.Instance.Name); Requests(pod, own) {
		return own
	}
	return v0.ResourceName(f.Instance.Spec.ConfigurationName)
}

// shortageOfSlots reports which Pods use the slots of an Instance that a Pod waits for.
func (f *Facts) shortageOfSlots(waits string, pod *corev1.Pod, message string) []finding.Mistake {
	resource := v0.ResourceName(f.Instance.Name)
	waits += resource + ": "
	var nodes, users []string
	free := 0
	for _, s := range f.Slots {
		switch {
		case s.Node == "":
			free++
		case !slices.Contains(nodes, s.Node):
			nodes = append(nodes, s.Node)
		}
		for _, user := range f.users(&s) {
			if !slices.Contains(users, user) {
				users = append(users, user)
			}
		}
	}
	all := "the only slot is"
	if n := f.Instance.Spec.Capacity; n > 1 {
		all = fmt.Sprintf("all %d slots are", n)
	}
	wanted := int(advice.Requested(&pod.Spec)[resource])
	if free > 0 {
		all = fmt.Sprintf("it requests %d slots, and %d of %d is free; the others are", wanted, free, f.Instance.Spec.Capacity)
	}
	switch {
	case free < wanted && len(nodes) > 0:
		holders := strings.Join(nodes, " and ")
		if len(users) > 0 {
			holders += " (" + strings.Join(users, ", ") + ")"
		}
		cause, remedy := f.updateWaits(pod, resource)
		release := "delete a Pod that uses the device, request fewer slots, or raise spec.capacity of the Configuration"
		if len(users) == 0 && f.AllPods {
			release = "the agent frees a slot within minutes after its Pod has terminated: kubectl akri nodes " + nodes[0]
		}
		return findingf(cmp.Or(remedy, release),
			"%s%s in use on %s.%s", waits, all, holders, cause)
	case len(f.Instance.Spec.Nodes) == 0:
		return findingf("", "%sno node sees the device.", waits)
	}
	return findingf(schedulerRemedy,
		"%s%d of %d slots are free, on %s. The scheduler reports: %s",
		waits, free, f.Instance.Spec.Capacity, strings.Join(f.Instance.Spec.Nodes, ", "), message)
}

// shortageOfDevices explains why no node has as many devices of a Configuration as a Pod
// requests: they are different devices, and one node sees all of them.
func (f *Facts) shortageOfDevices(waits string, pod *corev1.Pod, message string) []finding.Mistake {
	resource := v0.ResourceName(f.Configuration.Name)
	wanted := advice.Requested(&pod.Spec)[resource]
	waits += fmt.Sprintf("%s of %s", counted(int(wanted), "device"), resource)
	devices, free := map[string]int64{}, map[string]int64{}
	var nodes []string
	var most int64
	for i := range f.Instances {
		for _, node := range f.Instances[i].Spec.Nodes {
			if devices[node]++; devices[node] == 1 {
				nodes = append(nodes, node)
			}
			if v0.FreeSlots(&f.Instances[i]) > 0 {
				free[node]++
			}
			most = max(most, free[node])
		}
	}
	slices.Sort(nodes)
	switch {
	case len(nodes) == 0:
		return findingf("", "%s, but no node sees any.", waits)
	case most >= wanted:
		return findingf(schedulerRemedy,
			"%s. Enough of them have a free slot, on %s. The scheduler reports: %s", waits, strings.Join(nodes, ", "), message)
	}
	const maxNodes = 5
	var places []string
	for i, node := range nodes {
		if i == maxNodes {
			places = append(places, fmt.Sprintf("and fewer than requested on %d other nodes", len(nodes)-i))
			break
		}
		places = append(places, fmt.Sprintf("%d of %d on %s", free[node], devices[node], node))
	}
	problem := fmt.Sprintf("%s; devices with a free slot: %s.", waits, strings.Join(places, ", "))
	release := "request fewer devices: no node sees as many"
	if holders := f.holders(); len(holders) > 0 {
		release = "delete a Pod that uses a device, request fewer devices, or raise spec.capacity of the Configuration"
		problem += "\nIn use: " + strings.Join(holders, "; ") + "."
	}
	cause, remedy := f.updateWaits(pod, resource)
	return findingf(cmp.Or(remedy, release), "%s%s", problem, cause)
}
