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

// Check is a check of an installation. It fails if it has problems; Right is what is right apart from them.
type Check struct {
	Name     string            `json:"name"`
	Right    string            `json:"right"`
	Problems []finding.Mistake `json:"problems,omitempty"`
}

// Checks are all checks of an installation.
type Checks []Check

// Text prints a line for each check, and below it the problems with their remedies.
func (c Checks) Text(out io.Writer) error {
	var b strings.Builder
	for _, check := range c {
		line := "ok    " + check.Name + ": " + text.OneLine(check.Right)
		if len(check.Problems) > 0 {
			line = "FAIL  " + check.Name + ":"
		}
		fmt.Fprintln(&b, line)
		writeFindings(&b, check.Problems)
	}
	return printed(out, b.String())
}

// Check checks the parts of Akri, as far as the API server tells.
func (f *NodeFacts) Check() Checks {
	checks := append(Checks{{"controller", "no problem", f.Problems(Controller)}}, f.checkNodes()...)
	var handlers []string
	var broken, failing []finding.Mistake
	for i := range f.Workloads {
		if w := &f.Workloads[i]; ComponentOf(w.Labels) != "" && !slices.Contains(order, ComponentOf(w.Labels)) {
			handlers, broken = append(handlers, ComponentOf(w.Labels)), append(broken, f.broken(w)...)
		}
	}
	for i := range f.Configurations {
		c := &f.Configurations[i]
		for _, condition := range c.Status.Conditions {
			if condition.Type != v0.ConditionReady && condition.Status == metav1.ConditionFalse {
				failing = append(failing, findingf(fmt.Sprintf("kubectl akri why -n %s configuration/%s", c.Namespace, c.Name),
					"Configuration %s/%s is not %s (%s): %s", c.Namespace, c.Name, condition.Type, condition.Reason, condition.Message)...)
			}
		}
	}
	return append(checks, Check{"handlers", cmp.Or(strings.Join(handlers, ", "), "none outside of the agents"), broken},
		Check{"configurations", "no error in " + counted(len(f.Configurations), "Configuration"), failing})
}

// checkNodes checks that the agents are ready, and that the kubelets know their devices. A
// node without an agent, such as one of the control plane, is usually meant to have none.
func (f *NodeFacts) checkNodes() Checks {
	ready, without := 0, 0
	all := f.Problems(Agent)
	broken, unknown := all, []finding.Mistake(nil)
	for _, r := range f.Reports() {
		at := slices.IndexFunc(f.Nodes, func(node corev1.Node) bool { return node.Name == r.Node })
		listed := func(device NodeDevice) bool {
			_, found := f.Nodes[at].Status.Capacity[corev1.ResourceName(v0.ResourceName(device.Instance))]
			return found
		}
		switch {
		case r.Agent == "none":
			without++
		case r.Agent == "ready":
			ready++
			if at >= 0 && len(r.Devices) > 0 && !slices.ContainsFunc(r.Devices, listed) {
				unknown = append(unknown, findingf("if they are not new, set the kubelet's directory (kubelet.rootDir in the chart), or look in its "+
					"log for why it refuses them", "The kubelet of node %s does not offer any of its devices, so Pods get none there.", r.Node)...)
			}
		case len(all) == 0:
			broken = append(broken, findingf("kubectl akri nodes "+r.Node, "The agent of node %s does not work: %s", r.Node, r.Problem)...)
		}
	}
	known := "know the devices of their nodes"
	if len(f.Nodes) == 0 {
		known = "not checked, because you may not list Nodes"
	}
	return Checks{{"agents", fmt.Sprintf("ready on %s; %s without one", counted(ready, "node"), counted(without, "node")), broken},
		{"kubelets", known, unknown}}
}
