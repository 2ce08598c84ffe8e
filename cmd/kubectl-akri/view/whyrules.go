package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/discovery/builtin"
	"akri.sh/akri/internal/finding"
)

// subject is what a rule looks at.
type subject int

const (
	anInstance      subject = 1 << iota // that is explained
	aConfiguration                      // that is explained
	aPod                                // that is explained
	aRequestedOne                       // an Instance that the explained Pod requests
	aParent         = anInstance | aConfiguration
	anyExplainedOne = aParent | aPod
)

// whyRules are evaluated in this order, from problems of the device to problems of its
// Pods. All findings are shown.
var whyRules = []struct {
	looksAt subject
	find    func(*Facts) []finding.Mistake
}{
	{anyExplainedOne, (*Facts).nodesDown},
	{aParent, func(f *Facts) []finding.Mistake { return f.System.Problems(Controller) }},
	{aParent, func(f *Facts) []finding.Mistake { return f.System.Problems(Webhook) }},
	{aPod, (*Facts).unknownResources},
	{aParent | aRequestedOne, (*Facts).deleted},
	{anInstance, (*Facts).configurationMissing},
	{aParent, (*Facts).handlerDown},
	{anInstance | aRequestedOne, (*Facts).deviceNotSeen},
	{aParent, (*Facts).notReconciled},
	{aParent, (*Facts).notAccepted},
	{aConfiguration, (*Facts).discoveryFails},
	{aConfiguration, (*Facts).noDevices},
	{aParent, (*Facts).notApplied},
	{aConfiguration, (*Facts).instancesNotReady},
	{anyExplainedOne, (*Facts).filesChanged},
	{anyExplainedOne, (*Facts).podsNotRunning},
	{anInstance, (*Facts).slotsWithoutPod},
	{aParent, (*Facts).objectsNotReady},
}

// Conclude finds the problems and their remedies.
func (f *Facts) Conclude() {
	explained := aConfiguration
	switch {
	case f.Pod != nil:
		explained = aPod
	case f.Instance != nil:
		explained = anInstance
	}
	f.addSlots()
	for _, one := range f.Requested {
		one.addSlots()
	}
	f.Findings = []finding.Mistake{}
	for _, rule := range whyRules {
		if rule.looksAt&explained != 0 {
			f.Findings = append(f.Findings, rule.find(f)...)
		}
		for _, one := range f.Requested {
			if rule.looksAt&aRequestedOne != 0 && one.Instance != nil && !Terminated(f.Pod) {
				f.Findings = append(f.Findings, rule.find(one)...)
			}
		}
	}
}

// health says what is right if there is no problem.
func (f *Facts) health() string {
	switch {
	case f.Pod != nil && f.Pod.Status.Phase == corev1.PodPending:
		return f.podName(f.Pod) + " is about to start"
	case f.Pod != nil:
		return fmt.Sprintf("%s is %s", f.podName(f.Pod), f.Pod.Status.Phase)
	case f.Instance != nil:
		return "all objects of this device exist and are ready"
	}
	return "devices were found, and all objects exist and are ready"
}

// findingf returns what prevents a device from being used, in complete sentences. The remedy
// is empty if there is nothing to do.
func findingf(remedy, format string, args ...any) []finding.Mistake {
	return []finding.Mistake{{Cause: fmt.Sprintf(format, args...), Hint: remedy}}
}

func (f *Facts) unknownResources() []finding.Mistake {
	var findings []finding.Mistake
	for _, resource := range f.Unknown {
		findings = append(findings, findingf("correct the name, or check why the device is not found: kubectl akri tree lists the devices",
			"%s is requested, but there is no Instance or Configuration %s.", resource, strings.TrimPrefix(resource, v0.Domain+"/"))...)
	}
	return findings
}

func (f *Facts) deleted() []finding.Mistake {
	p := f.parent()
	if p.meta.DeletionTimestamp == nil {
		return nil
	}
	remedy := ""
	if len(p.meta.Finalizers) > 0 {
		remedy = "it is deleted once its finalizers are removed: " + strings.Join(p.meta.Finalizers, ", ")
	}
	return findingf(remedy, "The %s is being deleted.", p.kind)
}

func (f *Facts) configurationMissing() []finding.Mistake {
	if f.Configuration != nil {
		return nil
	}
	return findingf("delete the Instance, or apply that Configuration again",
		"Configuration %s does not exist, so no objects are created for the device.", f.Instance.Spec.ConfigurationName)
}

func (f *Facts) deviceNotSeen() []finding.Mistake {
	if len(f.Instance.Spec.Nodes) > 0 {
		return nil
	}
	lines := []string{"No node sees the device."}
	if f.Configuration != nil {
		for _, failure := range f.Configuration.Status.DiscoveryFailures {
			lines = append(lines, fmt.Sprintf("Discovery fails on node %s, handler %s: %s", failure.Node, failure.Handler, failure.Message))
		}
	}
	return findingf("check that the device is switched on and reachable, and check the logs of the agent and the discovery handler",
		"%s", strings.Join(lines, "\n"))
}

// handlerDown explains why no node has the discovery handler, if devices are missing. Another
// program may have registered under its name.
func (f *Facts) handlerDown() []finding.Mistake {
	found := len(f.Instances) > 0 || f.Instance != nil && len(f.Instance.Spec.Nodes) > 0
	if f.Configuration == nil || found && len(f.Configuration.Status.DiscoveryFailures) == 0 {
		return nil
	}
	return f.System.Problems(f.Configuration.Spec.DiscoveryHandler.Name)
}

// deviceNodes returns the nodes that see one of the devices.
func (f *Facts) deviceNodes() (nodes []string) {
	for _, one := range append([]*Facts{f}, f.Requested...) {
		for _, device := range one.Devices() {
			nodes = append(nodes, device.Spec.Nodes...)
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// nodesDown explains why nodes do not serve the devices: by the nodes, or else by the agents.
func (f *Facts) nodesDown() []finding.Mistake {
	var findings []finding.Mistake
	for _, name := range f.deviceNodes() {
		if complaint := f.System.nodeProblem(name); complaint != "" {
			findings = append(findings, findingf(nodeRemedy(name), "Node %s, which sees the device, %s.", name, complaint)...)
		}
	}
	if len(findings) > 0 {
		return findings
	}
	if findings = f.System.Problems(Agent); len(findings) > 0 {
		return findings
	}
	for _, name := range f.deviceNodes() {
		if cause, remedy := f.System.agentProblem(name); cause != "" {
			findings = append(findings, findingf(remedy, "Node %s, which sees the device, has no working agent: %s", name, cause)...)
		}
	}
	return findings
}

func (f *Facts) notReconciled() []finding.Mistake {
	p := f.parent()
	written := func(c metav1.Condition) bool { return c.Reason != v0.ReasonPending } // the default
	if slices.ContainsFunc(p.conditions, written) || f.Configuration == nil || len(f.System.Problems(Controller)) > 0 {
		return nil
	}
	return findingf("check that akri-controller is running (kubectl get deployments -A), and check its log",
		"The controller has not reconciled the %s yet.", p.kind)
}

func (f *Facts) notAccepted() []finding.Mistake {
	if f.Configuration == nil {
		return nil
	}
	accepted := meta.FindStatusCondition(f.Configuration.Status.Conditions, v0.ConditionAccepted)
	if accepted == nil || accepted.Status != metav1.ConditionFalse {
		return nil
	}
	whose := ""
	if f.Instance != nil {
		whose = " of Configuration " + f.Configuration.Name
	}
	return findingf(f.remedyOf(accepted.Reason), "The templates%s are not accepted (%s); nothing changes until they are corrected:\n%s",
		whose, accepted.Reason, accepted.Message)
}

func (f *Facts) discoveryFails() []finding.Mistake {
	const maxShown = 5
	failures := f.Configuration.Status.DiscoveryFailures
	down := len(f.handlerDown()) > 0
	if discovering := meta.FindStatusCondition(f.Configuration.Status.Conditions, v0.ConditionDiscovering); discovering != nil &&
		discovering.Reason == v0.ReasonHandlerMissing && !down {
		return findingf(f.handlerRemedy(), "No device can be found: %s", discovering.Message)
	}
	// Where the handler is refused, it does not matter that others do not have it.
	if refused := slices.DeleteFunc(slices.Clone(failures), v0.DiscoveryFailure.HandlerMissing); len(refused) > 0 || down {
		failures = refused
	}
	var findings []finding.Mistake
	for i, failure := range failures {
		if i == maxShown {
			return append(findings, findingf("kubectl akri nodes shows all of them", "Discovery fails %d times more.", len(failures)-i)...)
		}
		message, remedy := failureOf(f.Configuration, failure)
		findings = append(findings, findingf(remedy, "Discovery fails on node %s, handler %s: %s", failure.Node, failure.Handler, message)...)
	}
	return findings
}

// failureOf says why discovery for a Configuration fails on a node, and what to do about it.
func failureOf(c *v0.Configuration, failure v0.DiscoveryFailure) (message, remedy string) {
	cause, _, forbidden := strings.Cut(failure.Message, ": allow it with kubectl akri rbac ") // to read a Secret
	_, temporary := c.Labels[v0.LabelDiscoverUntil]
	switch {
	case forbidden && temporary:
		return cause, "kubectl akri rbac -f FILE | kubectl apply -f - allows it for the Configuration in a file"
	case forbidden:
		return failure.Message, permit(c.Namespace, c.Name)
	}
	return failure.Message, "kubectl akri nodes " + failure.Node + " shows the agent there; its log and the handler's have more"
}

// permit returns the command that grants what a Configuration needs.
func permit(namespace, configuration string) string {
	return fmt.Sprintf("kubectl akri rbac -n %s %s | kubectl apply -f -", namespace, configuration)
}

// handlerRemedy says how to get a discovery handler that no node has.
func (f *Facts) handlerRemedy() string {
	name := f.Configuration.Spec.DiscoveryHandler.Name
	if _, found := builtin.Validators[name]; !found {
		return "Akri has no handler with this name, only " + strings.Join(slices.Sorted(maps.Keys(builtin.Validators)), ", ")
	}
	return "with the chart, --set handlers." + name + ".enabled=true installs this one; its Pods: kubectl get pods -A | grep discovery"
}

func (f *Facts) noDevices() []finding.Mistake {
	if len(f.Instances) > 0 || len(f.Configuration.Status.DiscoveryFailures) > 0 || f.Configuration.DeletionTimestamp != nil ||
		len(f.handlerDown()) > 0 {
		return nil
	}
	handler := f.Configuration.Spec.DiscoveryHandler.Name
	return findingf("check on which nodes agents (kubectl akri nodes) and Pods of "+handler+" run, their log, and the discoveryDetails",
		"No device was found, and no agent reports a failure: the handler %s finds none, or runs on no node.", handler)
}

// notApplied leaves out what other rules and the pages of the Instances explain.
func (f *Facts) notApplied() []finding.Mistake {
	applied := meta.FindStatusCondition(f.parent().conditions, v0.ConditionApplied)
	elsewhere := []string{v0.ReasonConfigurationNotFound, v0.ReasonInstancesFailing}
	if applied == nil || applied.Status != metav1.ConditionFalse || slices.Contains(elsewhere, applied.Reason) || len(f.notAccepted()) > 0 {
		return nil
	}
	return findingf(f.remedyOf(applied.Reason), "Not all objects could be applied (%s):\n%s", applied.Reason, applied.Message)
}

// remedyOf returns the remedy for a condition's reason, in addition to the message.
func (f *Facts) remedyOf(reason string) string {
	namespace, configuration := f.parent().meta.Namespace, f.parent().meta.Name
	if f.Instance != nil {
		configuration = f.Instance.Spec.ConfigurationName
	}
	switch reason {
	case v0.ReasonForbidden:
		return permit(namespace, configuration)
	case v0.ReasonRenderFailed:
		if f.Instance != nil {
			properties := "no properties"
			if names := slices.Sorted(maps.Keys(f.Instance.Spec.BrokerProperties)); len(names) > 0 {
				properties = "the properties " + strings.Join(names, ", ")
			}
			return "the device has " + properties + "; correct the template, or set the missing property in spec.brokerProperties"
		}
		fallthrough
	case v0.ReasonInvalidTemplate, v0.ReasonRefused:
		return "correct the Configuration; kubectl akri lint -f FILE checks it without a cluster"
	case v0.ReasonConflict, v0.ReasonImmutable, v0.ReasonApplyFailed:
		return fmt.Sprintf("kubectl akri diff -n %s %s shows the differences", namespace, configuration)
	}
	return ""
}

// instancesNotReady names the Instances with problems. Their own pages explain them.
func (f *Facts) instancesNotReady() []finding.Mistake {
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

func (f *Facts) slotsWithoutPod() []finding.Mistake {
	if !f.AllPods {
		return nil
	}
	var findings []finding.Mistake
	for _, s := range f.Slots {
		if s.Node != "" && len(s.Holders) == 0 {
			findings = append(findings, findingf("the agent there frees it within minutes; if it does not, check its log",
				"Slot %s is in use on node %s, but no Pod there requests the device.", s.Name, s.Node)...)
		}
	}
	return findings
}

// podKinds lists kinds whose objects are ready when their Pods are.
var podKinds = []string{"Pod", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job"}

// objectsNotReady leaves out an Instance's objects whose Pods have a finding already.
func (f *Facts) objectsNotReady() []finding.Mistake {
	p := f.parent()
	if meta.IsStatusConditionFalse(p.conditions, v0.ConditionApplied) {
		return nil
	}
	reported := f.Instance != nil && len(f.podsNotRunning()) > 0
	var findings []finding.Mistake
	for _, object := range p.objects {
		if object.Ready || reported && slices.Contains(podKinds, kindOf(object)) {
			continue
		}
		name := fmt.Sprintf("%s -n %s %s", strings.ToLower(kindOf(object)), cmp.Or(object.Namespace, p.meta.Namespace), object.Name)
		remedy := "kubectl describe " + name
		if strings.HasPrefix(object.Reason, "waiting for the former") { // describe does not show finalizers
			remedy = "kubectl get " + name + " -o yaml shows metadata.finalizers: the components that set them must remove them"
		}
		findings = append(findings, findingf(remedy, "%s %s is not ready: %s", kindOf(object), object.Name, object.Reason)...)
	}
	return findings
}
