package view

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/finding"
	"akri.sh/akri/internal/text"
)

// NodeFacts are the objects in the API server that tell about the agents.
type NodeFacts struct {
	*System

	Instances      []v0.Instance
	Configurations []v0.Configuration
}

// NodeReport is what the API server tells about a node and its agent.
type NodeReport struct {
	Node string `json:"node"`
	// Agent is ready, not ready or none. Problem is the reason if it is not ready or none.
	Agent   string `json:"agent"`
	Problem string `json:"problem,omitempty"`
	// Pod is the agent's: NAMESPACE/NAME. Version is its image if that tells no version.
	Pod     string `json:"pod,omitempty"`
	Version string `json:"version,omitempty"`
	// Slots are those of all devices.
	Slots    NodeSlots     `json:"slots"`
	Devices  []NodeDevice  `json:"devices,omitempty"`
	Failures []NodeFailure `json:"failures,omitempty"`
	// Findings are what needs attention. A node without an agent, such as one of the control
	// plane, is usually meant to have none.
	Findings []finding.Mistake `json:"findings,omitempty"`
}

// NodeSlots are numbers of slots, as a node sees them: those that the node owns are held,
// and those that another node owns are taken.
type NodeSlots struct {
	Free  int `json:"free"`
	Held  int `json:"held"`
	Taken int `json:"taken"`
}

// NodeDevice is an Instance that names the node.
type NodeDevice struct {
	Namespace string    `json:"namespace"`
	Instance  string    `json:"instance"`
	Name      string    `json:"displayName,omitempty"`
	Shared    bool      `json:"shared"`
	Slots     NodeSlots `json:"slots"`
}

// NodeFailure is what discovery for a Configuration fails with on the node.
type NodeFailure struct {
	Namespace     string `json:"namespace"`
	Configuration string `json:"configuration"`
	Handler       string `json:"handler"`
	Message       string `json:"message"`
}

// Reports returns a report for each node that has an agent, a device or a failure, or that
// the API server lists, sorted by name.
func (f *NodeFacts) Reports() []NodeReport {
	reports := map[string]*NodeReport{}
	remedies := map[string]string{} // for agents that are not ready
	at := func(node string) *NodeReport {
		if reports[node] == nil {
			reports[node] = &NodeReport{Node: node, Agent: "none"}
		}
		return reports[node]
	}
	for node, pod := range f.agents() {
		report := at(node)
		report.Pod, report.Version = pod.Namespace+"/"+pod.Name, cmp.Or(VersionOf(pod), ImageOf(pod))
		report.Agent, report.Problem, remedies[node] = "ready", podProblem(pod), podRemedy(pod)
	}
	for i := range f.Nodes {
		report := at(f.Nodes[i].Name)
		if complaint := f.nodeProblem(report.Node); complaint != "" && report.Agent != "none" {
			report.Problem, remedies[report.Node] = "the node "+complaint, nodeRemedy(report.Node)
		}
		if cause, remedy := f.agentProblem(report.Node); report.Agent == "none" && cause != "" {
			report.Problem = cause + ": " + remedy
		}
	}
	for i := range f.Instances {
		instance := &f.Instances[i]
		for _, node := range instance.Spec.Nodes {
			report, slots := at(node), slotsOf(instance, node)
			device := NodeDevice{instance.Namespace, instance.Name, v0.DisplayName(instance), instance.Spec.Shared, slots}
			report.Devices = append(report.Devices, device)
			report.Slots.Free += slots.Free
			report.Slots.Held += slots.Held
			report.Slots.Taken += slots.Taken
		}
	}
	for i := range f.Configurations {
		c := &f.Configurations[i]
		for _, failure := range c.Status.DiscoveryFailures {
			report := at(failure.Node)
			report.Failures = append(report.Failures, NodeFailure{c.Namespace, c.Name, failure.Handler, failure.Message})
			_, remedy := failureOf(c, failure)
			report.Findings = append(report.Findings, findingf(remedy, "discovery of %s/%s fails, handler %s: %s",
				c.Namespace, c.Name, failure.Handler, failure.Message)...)
		}
	}
	all := make([]NodeReport, 0, len(reports))
	for _, node := range slices.Sorted(maps.Keys(reports)) {
		report := reports[node]
		if report.Problem != "" && report.Pod != "" {
			report.Agent = "not ready"
			report.Findings = append(findingf(remedies[node], "%s", report.Problem), report.Findings...)
		}
		all = append(all, *report)
	}
	return all
}

// agents returns the agent's Pod of each node. While one replaces another, it is the new one.
func (s *System) agents() map[string]*corev1.Pod {
	latest := map[string]*corev1.Pod{}
	for i := range s.Pods {
		pod := &s.Pods[i]
		node := nodeOf(pod)
		if node == "" || ComponentOf(pod.Labels) != Agent {
			continue
		}
		if known := latest[node]; known == nil || known.CreationTimestamp.Before(&pod.CreationTimestamp) {
			latest[node] = pod
		}
	}
	return latest
}

// nodeOf returns the node of a DaemonSet's Pod, or "": the scheduler puts it on the one that the
// DaemonSet controller requires.
func nodeOf(pod *corev1.Pod) string {
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			if len(term.MatchFields) > 0 { // metadata.name is the only field
				return term.MatchFields[0].Values[0]
			}
		}
	}
	return pod.Spec.NodeName
}

// podProblem returns the reason why the program in a Pod is not ready, or "".
func podProblem(pod *corev1.Pod) string {
	message, unscheduled := unschedulable(pod)
	reason, waiting, _ := waitingContainer(pod)
	ready := func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue }
	switch {
	case pod.DeletionTimestamp != nil:
		return fmt.Sprintf("Pod %s is being deleted", pod.Name)
	case unscheduled:
		return fmt.Sprintf("Pod %s cannot be scheduled: %s", pod.Name, message)
	case reason != "":
		return fmt.Sprintf("Pod %s does not run: %s", pod.Name, strings.TrimSuffix(reason+": "+waiting, ": "))
	case pod.Status.Phase != corev1.PodRunning:
		return fmt.Sprintf("Pod %s is %s", pod.Name, PodState(pod))
	case !slices.ContainsFunc(pod.Status.Conditions, ready):
		return fmt.Sprintf("Pod %s runs, but its readiness probe fails: kubectl -n %s logs %[1]s", pod.Name, pod.Namespace)
	}
	return ""
}

// slotsOf counts the slots of a device as a node sees them.
func slotsOf(instance *v0.Instance, node string) NodeSlots {
	slots := NodeSlots{Free: int(v0.FreeSlots(instance))}
	for _, value := range instance.Spec.DeviceUsage {
		switch owner, err := v0.ParseOwner(string(value)); {
		case err == nil && owner.Free():
		case err == nil && owner.Node == node:
			slots.Held++
		default:
			slots.Taken++
		}
	}
	return slots
}

// Nodes prints a line per node, followed by what needs attention.
func Nodes(out io.Writer, reports []NodeReport) error {
	const maxNotes = 10 // of a node
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NODE\tAGENT\tVERSION\tDEVICES\tSLOTS\tFAILURES")
	var lines []string
	for i := range reports {
		r := &reports[i]
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%d\n", r.Node, r.Agent, cmp.Or(text.OneLine(r.Version), "-"), len(r.Devices), r.Slots,
			len(r.Failures))
		for _, found := range r.Findings[:min(len(r.Findings), maxNotes)] {
			lines = append(lines, fmt.Sprintf("%s: %s", r.Node, text.OneLine(found.Cause)))
		}
		if more := len(r.Findings) - maxNotes; more > 0 {
			lines = append(lines, fmt.Sprintf("%s: and %d more: kubectl akri nodes %[1]s", r.Node, more))
		}
	}
	table.Flush()
	if len(lines) > 0 {
		fmt.Fprintf(&b, "\n%s\n", strings.Join(lines, "\n"))
	}
	return printed(out, b.String())
}

// Node prints all that is known about one node.
func Node(out io.Writer, r *NodeReport) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Node %s  agent %s\n", r.Node, r.Agent)
	if r.Pod == "" {
		fmt.Fprintln(&b, "  pod      none: "+text.OneLine(cmp.Or(r.Problem, "no DaemonSet of the agent runs there")))
	} else {
		fmt.Fprintf(&b, "  pod      %s\n  version  %s\n", r.Pod, text.OneLine(r.Version))
	}
	fmt.Fprintf(&b, "  slots    %s\n", r.Slots)
	var devices, causes []string
	for _, found := range r.Findings {
		causes = append(causes, found.Cause)
	}
	section(&b, "Needs attention", causes)
	for _, d := range r.Devices {
		shared := ""
		if d.Shared {
			shared = ", shared"
		}
		devices = append(devices, strings.TrimSpace(fmt.Sprintf("%s/%s  %s%s  %s", d.Namespace, d.Instance, d.Slots, shared, d.Name)))
	}
	section(&b, "Devices", devices)
	return printed(out, b.String())
}

// String returns the numbers that are not 0.
func (s NodeSlots) String() string {
	var words []string
	for i, n := range []int{s.Free, s.Held, s.Taken} {
		if n > 0 {
			words = append(words, fmt.Sprint(n, " ", []string{"free", "held", "taken"}[i]))
		}
	}
	return cmp.Or(strings.Join(words, ", "), "none")
}

// section prints lines under a title, if there are any.
func section(b *strings.Builder, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s:\n", title)
	for _, line := range lines {
		fmt.Fprintf(b, "  %s\n", text.OneLine(line))
	}
}

// counted returns a number of things.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func printed(out io.Writer, s string) error {
	if _, err := io.WriteString(out, s); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}
