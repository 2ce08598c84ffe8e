package view

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
)

func TestCheck(t *testing.T) {
	const allRight = "ok    controller: no problem\nok    agents: ready on 2 nodes; 0 nodes without one\n" +
		"ok    kubelets: know the devices of their nodes\n" +
		"ok    handlers: onvif\nok    configurations: no error in 1 Configuration\n"
	for name, tc := range map[string]struct {
		change func(*NodeFacts)
		want   []string // all lines if it begins with ok
	}{
		"all is right": {nil, []string{allRight}},
		"the controller has no replicas": {func(f *NodeFacts) { f.Workloads[0] = workload("Deployment", "akri-controller", 0, 0) },
			[]string{"FAIL  controller:\n  Deployment akri-system/akri-controller is not ready", "    → kubectl scale --replicas=1"}},
		"an agent crashes": {func(f *NodeFacts) { f.Pods[1].Status = waiting("", "CrashLoopBackOff", "").Status },
			[]string{"FAIL  agents:\n  The agent of node node2 does not work: Pod agent-b does not run: CrashLoopBackOff\n",
				"    → kubectl akri nodes node2\n"}},
		"a node is not ready": {func(f *NodeFacts) { f.Nodes[1] = node("node2", corev1.ConditionUnknown, "") },
			[]string{"FAIL  agents:\n  The agent of node node2 does not work: the node is not Ready\n    → kubectl akri nodes node2\n"}},
		"no agent is ready": {
			func(f *NodeFacts) {
				f.Workloads[2].Ready = 0
				for i := range f.Pods {
					f.Pods[i].Status = waiting("", "CrashLoopBackOff", "").Status
				}
			},
			[]string{"FAIL  agents:\n  DaemonSet akri-system/akri-agent is not ready", "ok    kubelets: know the devices of their nodes\n"}},
		"a node is meant to have no agent": {
			func(f *NodeFacts) {
				f.Pods, f.Workloads[2].Pod.NodeSelector = f.Pods[:1], map[string]string{"iot": "yes"}
			},
			[]string{"ok    agents: ready on 1 node; 1 node without one\n"}},
		"the kubelet knows no device": {func(f *NodeFacts) { f.Nodes[0].Status.Capacity = nil },
			[]string{"FAIL  kubelets:\n  The kubelet of node node1 does not offer any of its devices, so Pods get none there.\n",
				"kubelet.rootDir in the chart"}},
		"there is no device": {func(f *NodeFacts) { f.Instances = nil }, []string{"ok    kubelets: know the devices of their nodes"}},
		"a handler does not run": {func(f *NodeFacts) { f.Workloads[3].Ready = 0 },
			[]string{"FAIL  handlers:\n  DaemonSet akri-system/akri-onvif-discovery is not ready, so devices of this kind are not found"}},
		"a Configuration is not applied": {
			func(f *NodeFacts) {
				f.Configurations[0].Status.Conditions = []metav1.Condition{{Type: v0.ConditionReady, Status: metav1.ConditionFalse},
					{Type: v0.ConditionApplied, Status: metav1.ConditionFalse, Reason: v0.ReasonForbidden, Message: "no right"}}
			},
			[]string{"FAIL  configurations:\n  Configuration plant/cam is not Applied (Forbidden): no right\n",
				"    → kubectl akri why -n plant configuration/cam"}},
		"Akri is not installed": {func(f *NodeFacts) { *f = NodeFacts{System: &System{Searched: true}} },
			[]string{"FAIL  controller:\n  Akri's controller is not installed", "FAIL  agents:\n  Akri's agent is not installed"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &NodeFacts{System: installed(nil), Instances: []v0.Instance{nodeInstance("cam-1", 1, nil, "node1")},
				Configurations: []v0.Configuration{{ObjectMeta: metav1.ObjectMeta{Namespace: "plant", Name: "cam"}}}}
			f.Nodes[0].Status.Capacity = corev1.ResourceList{"akri.sh/cam-1": resource.MustParse("1")}
			if tc.change != nil {
				tc.change(f)
			}
			var out strings.Builder
			if err := f.Check().Text(&out); err != nil {
				t.Fatal(err)
			}
			rest := out.String()
			for _, want := range tc.want {
				_, after, found := strings.Cut(rest, want)
				if rest = after; !found || want == allRight && out.String() != want {
					t.Errorf("%q is not in\n%s", want, &out)
				}
			}
		})
	}
}
