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

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/discovery/builtin"
)

// ConfigurationFacts holds a Configuration and the objects related to it.
type ConfigurationFacts struct {
	Configuration v0.Configuration
	// Instances are sorted by name.
	Instances []v0.Instance
	// Pods request one of the devices or the Configuration's resource. AllPods reports
	// whether all namespaces were searched.
	Pods    []corev1.Pod
	AllPods bool
	// Events are those of the Configuration, its objects and the Pods.
	Events []corev1.Event
	Now    time.Time
}

// maxInstances limits the Instances that a page lists.
const maxInstances = 20

// configurationRules are evaluated in this order. All findings are shown.
var configurationRules = []func(*ConfigurationFacts) []conclusion{
	(*ConfigurationFacts).deleted,
	(*ConfigurationFacts).notReconciled,
	(*ConfigurationFacts).notAccepted,
	(*ConfigurationFacts).discoveryFails, // An agent or a handler reports a failure.
	(*ConfigurationFacts).noDevices,      // There is neither a device nor a failure.
	(*ConfigurationFacts).notApplied,     // An object for all devices could not be applied.
	(*ConfigurationFacts).instancesNotReady,
	(*ConfigurationFacts).podsWaiting, // A Pod waits for any of the devices, or failed.
	(*ConfigurationFacts).objectsNotReady,
}

// WhyConfiguration prints the state of a Configuration, the problems found and their
// remedies.
func WhyConfiguration(out io.Writer, f *ConfigurationFacts) error {
	var b strings.Builder
	c := &f.Configuration
	fmt.Fprintf(&b, "Configuration %s/%s  %s\n", c.Namespace, c.Name, readiness(c.Status.Conditions))
	fmt.Fprintf(&b, "  handler    %s\n", c.Spec.DiscoveryHandler.Name)
	fmt.Fprintf(&b, "  devices    %s\n", f.devicesText())
	fmt.Fprintf(&b, "  resource   %s, for any of the devices: %s\n", f.resource(), f.slotsText())
	writeConditions(&b, c.Status.Conditions)
	if len(f.Instances) > 0 {
		b.WriteString("\nDevices:\n")
	}
	for i := range f.Instances {
		if i == maxInstances {
			fmt.Fprintf(&b, "  and %d more: kubectl akri tree -n %s %s\n", len(f.Instances)-i, c.Namespace, c.Name)
			break
		}
		instance := &f.Instances[i]
		fmt.Fprintf(&b, "  Instance %s  on %s  %s, %s\n", instance.Name, cmp.Or(strings.Join(instance.Spec.Nodes, ", "), "no node"),
			readiness(instance.Status.Conditions), usageText(instance))
	}
	writeObjects(&b, c.Status.Resources)
	own := f.ownPods()
	if len(own) > 0 {
		fmt.Fprintf(&b, "\nPods that request %s:\n", f.resource())
	}
	for i := range own {
		pod := &own[i]
		fmt.Fprintf(&b, "  %s  %s  %s\n", podName(pod, c.Namespace), nodeText(pod), PodState(pod))
	}
	writeEvents(&b, f.Events, f.Now)
	writeConclusion(&b, f.conclude())
	return printed(out, b.String())
}

func (f *ConfigurationFacts) conclude() []conclusion {
	var findings []conclusion
	for _, rule := range configurationRules {
		findings = append(findings, rule(f)...)
	}
	if len(findings) > 0 {
		return findings
	}
	return []conclusion{{cause: "No problem found: devices were found, and all objects exist and are ready."}}
}

func (f *ConfigurationFacts) resource() string { return v0.ResourceName(f.Configuration.Name) }

func (f *ConfigurationFacts) devicesText() string {
	ready := 0
	for i := range f.Instances {
		if meta.IsStatusConditionTrue(f.Instances[i].Status.Conditions, v0.ConditionReady) {
			ready++
		}
	}
	if len(f.Instances) == 0 {
		return "none"
	}
	return fmt.Sprintf("%s, %d ready", counted(len(f.Instances), "Instance"), ready)
}

func (f *ConfigurationFacts) slotsText() string {
	free, all := 0, 0
	for i := range f.Instances {
		free += freeSlots(&f.Instances[i])
		all += int(f.Instances[i].Spec.Capacity)
	}
	return fmt.Sprintf("%d of %s free", free, counted(all, "slot"))
}

// usageText describes how many slots of a device are free.
func usageText(instance *v0.Instance) string {
	return fmt.Sprintf("%d of %s free", freeSlots(instance), counted(int(instance.Spec.Capacity), "slot"))
}

func freeSlots(instance *v0.Instance) int {
	free := int(instance.Spec.Capacity)
	for _, owner := range instance.Spec.DeviceUsage {
		if owner != "" {
			free--
		}
	}
	return max(free, 0)
}

func (f *ConfigurationFacts) deleted() []conclusion {
	if f.Configuration.DeletionTimestamp == nil {
		return nil
	}
	remedy := ""
	if len(f.Configuration.Finalizers) > 0 {
		remedy = "it is deleted once its finalizers are removed: " + strings.Join(f.Configuration.Finalizers, ", ")
	}
	return findingf(remedy, "The Configuration is being deleted.")
}

func (f *ConfigurationFacts) notReconciled() []conclusion {
	if len(f.Configuration.Status.Conditions) > 0 {
		return nil
	}
	return findingf("check that akri-controller is running (kubectl get deployments -A), and check its log",
		"The controller has not reconciled the Configuration yet.")
}

func (f *ConfigurationFacts) notAccepted() []conclusion {
	accepted := meta.FindStatusCondition(f.Configuration.Status.Conditions, v0.ConditionAccepted)
	if accepted == nil || accepted.Status != metav1.ConditionFalse {
		return nil
	}
	return findingf(f.remedyOf(accepted.Reason), "The templates are not accepted (%s); nothing changes until they are corrected:\n%s",
		accepted.Reason, accepted.Message)
}

func (f *ConfigurationFacts) remedyOf(reason string) string {
	return remedyOf(reason, f.Configuration.Namespace, f.Configuration.Name)
}

func (f *ConfigurationFacts) discoveryFails() []conclusion {
	const maxShown = 5
	failures := f.Configuration.Status.DiscoveryFailures
	if discovering := meta.FindStatusCondition(f.Configuration.Status.Conditions, v0.ConditionDiscovering); discovering != nil &&
		discovering.Reason == v0.ReasonHandlerMissing {
		return findingf(f.handlerRemedy(), "No device can be found: %s", discovering.Message)
	}
	var findings []conclusion
	for i, failure := range failures {
		if i == maxShown {
			return append(findings, findingf("kubectl akri nodes shows all of them", "Discovery fails %d times more.", len(failures)-i)...)
		}
		findings = append(findings, findingf("kubectl akri nodes "+failure.Node+" shows the agent there; its log and the handler's have more",
			"Discovery fails on node %s, handler %s: %s", failure.Node, failure.Handler, failure.Message)...)
	}
	return findings
}

// handlerRemedy says how to get a discovery handler that no node has.
func (f *ConfigurationFacts) handlerRemedy() string {
	name := f.Configuration.Spec.DiscoveryHandler.Name
	if _, found := builtin.Validators[name]; !found {
		return "Akri has none with this name, but " + strings.Join(slices.Sorted(maps.Keys(builtin.Validators)), ", ")
	}
	return "with the chart, --set handlers." + name + ".enabled=true installs this one"
}

func (f *ConfigurationFacts) noDevices() []conclusion {
	if len(f.Instances) > 0 || len(f.Configuration.Status.DiscoveryFailures) > 0 || f.Configuration.DeletionTimestamp != nil {
		return nil
	}
	handler := f.Configuration.Spec.DiscoveryHandler.Name
	return findingf("check on which nodes the Pods of "+handler+" run, their log, and spec.discoveryHandler.discoveryDetails",
		"No device was found, and no agent reports a failure: the handler %s finds none, or runs on no node.", handler)
}

func (f *ConfigurationFacts) notApplied() []conclusion {
	applied := meta.FindStatusCondition(f.Configuration.Status.Conditions, v0.ConditionApplied)
	if applied == nil || applied.Status != metav1.ConditionFalse || applied.Reason == v0.ReasonInstancesFailing || len(f.notAccepted()) > 0 {
		return nil
	}
	return findingf(f.remedyOf(applied.Reason), "Not all objects could be applied (%s):\n%s", applied.Reason, applied.Message)
}

// instancesNotReady names the Instances with problems. Their own pages explain them.
func (f *ConfigurationFacts) instancesNotReady() []conclusion {
	var names []string
	first := ""
	for i := range f.Instances {
		instance := &f.Instances[i]
		ready := meta.FindStatusCondition(instance.Status.Conditions, v0.ConditionReady)
		if ready == nil || ready.Status == metav1.ConditionTrue {
			continue
		}
		if names = append(names, instance.Name); len(names) == 1 {
			first = fmt.Sprintf("%s: %s", ready.Reason, ready.Message)
		}
	}
	switch len(names) {
	case 0:
		return nil
	case 1:
		return findingf("kubectl akri why instance/"+names[0], "Instance %s is not ready: %s", names[0], first)
	}
	return findingf("kubectl akri why instance/"+names[0], "%d of %d Instances are not ready. The first is %s: %s",
		len(names), len(f.Instances), names[0], first)
}

func (f *ConfigurationFacts) podsWaiting() []conclusion { return perPod(f.ownPods(), f.waitingPod) }

// ownPods returns the Pods that request any of the devices. Those that request a
// certain one are on its page.
func (f *ConfigurationFacts) ownPods() []corev1.Pod {
	return slices.DeleteFunc(slices.Clone(f.Pods), func(pod corev1.Pod) bool { return !Requests(&pod, f.resource()) })
}

// waitingPod explains why a Pod that requests the Configuration's resource is not
// running.
func (f *ConfigurationFacts) waitingPod(pod *corev1.Pod) []conclusion {
	name := podName(pod, f.Configuration.Namespace)
	message, found := unschedulable(pod)
	switch {
	case !found:
		return append(failedPod(pod, name), waitingPod(pod, name)...)
	case !strings.Contains(message, "Insufficient "+f.resource()):
		return findingf("", "%s cannot be scheduled: %s", name, message)
	}
	return []conclusion{f.shortage(pod, name, message)}
}

// shortage explains why no node has as many devices as a Pod requests: they are
// different devices, and one node sees all of them.
func (f *ConfigurationFacts) shortage(pod *corev1.Pod, name, message string) conclusion {
	wanted := Requested(pod)[f.resource()]
	devices, free := map[string]int64{}, map[string]int64{}
	for i := range f.Instances {
		for _, node := range f.Instances[i].Spec.Nodes {
			devices[node]++
			if freeSlots(&f.Instances[i]) > 0 {
				free[node]++
			}
		}
	}
	var nodes []string
	var most int64
	for node := range devices {
		nodes = append(nodes, node)
		most = max(most, free[node])
	}
	slices.Sort(nodes)
	waits := fmt.Sprintf("%s waits for %s of %s", name, counted(int(wanted), "device"), f.resource())
	switch {
	case len(nodes) == 0:
		return conclusion{cause: waits + ", but no node sees any."}
	case most >= wanted:
		return conclusion{
			cause: fmt.Sprintf("%s. Enough of them have a free slot, on %s. The scheduler reports: %s", waits, strings.Join(nodes, ", "), message),
			hint: "the Pod must be able to run on a node that sees the devices: check its nodeSelector, affinity and tolerations, " +
				"and the agent there (kubectl akri nodes)",
		}
	}
	const maxNodes = 5
	lines := make([]string, 0, len(nodes))
	for i, node := range nodes {
		if i == maxNodes {
			lines = append(lines, fmt.Sprintf("and on %d other nodes", len(nodes)-i))
			break
		}
		lines = append(lines, fmt.Sprintf("on %s, %d of %s", node, free[node], counted(int(devices[node]), "device")))
	}
	problem := fmt.Sprintf("%s, and a free slot have: %s.", waits, strings.Join(lines, "; "))
	if holders := f.holders(); len(holders) > 0 {
		problem += "\nIn use: " + strings.Join(holders, "; ") + "."
	}
	return conclusion{
		cause: problem,
		hint:  "delete a Pod that uses a device, request fewer devices, or raise spec.capacity of the Configuration",
	}
}

// holders names the owners of the slots that are in use.
func (f *ConfigurationFacts) holders() []string {
	const maxShown = 10
	var holders []string
	for i := range f.Instances {
		instance := &f.Instances[i]
		one := Facts{Instance: *instance, Pods: f.Pods}
		for _, slot := range one.slots() {
			if slot.owner.Free() {
				continue
			}
			if len(holders) == maxShown {
				return append(holders, "and others")
			}
			holders = append(holders, slot.name+" "+ownerText(slot.value, f.Configuration.Name)+slot.usersText(&one))
		}
	}
	return holders
}

func (f *ConfigurationFacts) objectsNotReady() []conclusion {
	if meta.IsStatusConditionFalse(f.Configuration.Status.Conditions, v0.ConditionApplied) {
		return nil
	}
	return notReady(f.Configuration.Status.Resources, f.Configuration.Namespace)
}

// notReady returns the objects that are not ready.
func notReady(resources []v0.ResourceStatus, namespace string) []conclusion {
	var findings []conclusion
	for _, resource := range resources {
		if resource.Ready {
			continue
		}
		remedy := fmt.Sprintf(
			"kubectl describe %s -n %s %s",
			strings.ToLower(resource.Kind),
			cmp.Or(resource.Namespace, namespace),
			resource.Name,
		)
		findings = append(findings, findingf(remedy, "%s %s is not ready: %s", resource.Kind, resource.Name, resource.Reason)...)
	}
	return findings
}
