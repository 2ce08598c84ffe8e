package view

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/finding"
	"akri.sh/akri/internal/text"
)

// Check is a check of an installation. Without problems, it is passed.
type Check struct {
	Name string `json:"name"`
	// Result says what is right, or why the check was skipped.
	Result   string            `json:"result,omitempty"`
	Skipped  bool              `json:"skipped,omitempty"`
	Problems []finding.Mistake `json:"problems"`
}

// Checks are all checks of an installation.
type Checks []Check

// Add adds a check that has found these problems. result says what is right.
func (c *Checks) Add(name, result string, problems []finding.Mistake) {
	if len(problems) > 0 {
		result = ""
	}
	*c = append(*c, Check{Name: name, Result: result, Problems: append([]finding.Mistake{}, problems...)})
}

// Skip adds a check that was not made, with the reason.
func (c *Checks) Skip(name, reason string) {
	*c = append(*c, Check{Name: name, Result: reason, Skipped: true, Problems: []finding.Mistake{}})
}

// Failed returns the number of checks that have found problems.
func (c Checks) Failed() (failed int) {
	for _, check := range c {
		if len(check.Problems) > 0 {
			failed++
		}
	}
	return failed
}

// Text prints a line for each check, and below it the problems with their remedies.
func (c Checks) Text(out io.Writer) error {
	var b strings.Builder
	for _, check := range c {
		switch {
		case check.Skipped:
			fmt.Fprintf(&b, "skip  %s: %s\n", check.Name, text.OneLine(check.Result))
		case len(check.Problems) == 0:
			fmt.Fprintf(&b, "ok    %s: %s\n", check.Name, text.OneLine(check.Result))
		default:
			fmt.Fprintf(&b, "FAIL  %s:\n", check.Name)
			writeFindings(&b, check.Problems)
		}
	}
	return printed(out, b.String())
}

// Check checks the parts of Akri, as far as the API server tells.
func (f *NodeFacts) Check(checks *Checks) {
	if problems := f.Problems(Controller); f.Has(Controller) || len(problems) > 0 {
		checks.Add("controller", "ready", problems)
	} else {
		checks.Skip("controller", unseen)
	}
	reports := f.Reports()
	f.checkAgents(checks, reports)
	f.checkKubelets(checks, reports)
	var handlers []string
	for i := range f.Workloads {
		if name := ComponentOf(f.Workloads[i].Labels); name != "" && !slices.Contains(order, name) {
			handlers = append(handlers, strings.ReplaceAll(name, "-", ""))
		}
	}
	slices.Sort(handlers)
	handlers = slices.Compact(handlers)
	checks.Add("handlers", cmp.Or(strings.Join(handlers, ", "), "none outside of the agents"), f.Problems(handlers...))
	var failing []finding.Mistake
	for i := range f.Configurations {
		failing = append(failing, failingOf(&f.Configurations[i])...)
	}
	checks.Add("configurations", "no error in "+counted(len(f.Configurations), "Configuration"), failing)
}

// unseen is why a part is not checked.
const unseen = "there is none that you may list"

// checkAgents checks that the agents of all nodes are ready. A node without an agent, such as
// one of the control plane, is usually meant to have none.
func (f *NodeFacts) checkAgents(checks *Checks, reports []NodeReport) {
	problems := f.Problems(Agent)
	ready, without := 0, []string{}
	for i := range reports {
		switch r := &reports[i]; {
		case r.Agent == "none":
			without = append(without, strings.TrimSuffix(r.Node+" has none: "+r.Problem, ": "))
		case r.Problem == "":
			ready++
		case len(problems) == 0 || f.nodeProblem(r.Node) != "":
			remedy := nodeRemedy(r.Node)
			if f.nodeProblem(r.Node) == "" {
				_, remedy = f.agentProblem(r.Node)
			}
			problems = append(problems, findingf(remedy, "The agent of node %s does not work: %s", r.Node, r.Problem)...)
		}
	}
	if ready == 0 && len(problems) == 0 {
		checks.Skip("agents", unseen)
		return
	}
	checks.Add("agents", strings.Join(append([]string{"ready on " + counted(ready, "node")}, without...), "; "), problems)
}

// checkKubelets checks that kubelets know the devices of their nodes. If one knows none of
// them, its agent may use another directory than the kubelet.
func (f *NodeFacts) checkKubelets(checks *Checks, reports []NodeReport) {
	var problems []finding.Mistake
	known := 0
	for i := range reports {
		r := &reports[i]
		at := slices.IndexFunc(f.Nodes, func(node corev1.Node) bool { return node.Name == r.Node })
		if at < 0 || r.Agent != "ready" || len(r.Devices) == 0 {
			continue
		}
		if slices.ContainsFunc(r.Devices, func(device NodeDevice) bool {
			_, found := f.Nodes[at].Status.Capacity[corev1.ResourceName(v0.ResourceName(device.Instance))]
			return found
		}) {
			known++
			continue
		}
		problems = append(problems, findingf("if they are not new: the directory may be another one (kubelet.rootDir in the chart), or the "+
			"kubelet refuses them: kubectl logs -n "+strings.Replace(r.Pod, "/", " ", 1)+" | grep -i kubelet",
			"The kubelet of node %s knows none of its devices, so no Pod gets one there: %s of node %[1]s is not in its capacity.",
			r.Node, v0.ResourceName(r.Devices[0].Instance))...)
	}
	if known == 0 && len(problems) == 0 {
		checks.Skip("kubelets", "no node with an agent has a device yet")
		return
	}
	checks.Add("kubelets", "know the devices of "+counted(known, "node"), problems)
}

// failingOf returns why a Configuration does not do what it is meant to.
func failingOf(c *v0.Configuration) []finding.Mistake {
	for _, condition := range c.Status.Conditions {
		if condition.Type != v0.ConditionReady && condition.Status == metav1.ConditionFalse {
			return findingf(fmt.Sprintf("kubectl akri why -n %s configuration/%s", c.Namespace, c.Name), "Configuration %s/%s is not %s (%s): %s",
				c.Namespace, c.Name, condition.Type, condition.Reason, condition.Message)
		}
	}
	return nil
}
