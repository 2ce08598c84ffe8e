package view

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/finding"
)

func agentPod(name, node string, status corev1.PodStatus) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "akri-system", Name: name, Labels: map[string]string{
			"app.kubernetes.io/name": "akri-agent", "app.kubernetes.io/part-of": "akri",
		}},
		Spec:   corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Image: "akri.sh/agent:v1.2.3"}}},
		Status: status,
	}
}

func running(ready corev1.ConditionStatus) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}}
}

func node(name string, ready corev1.ConditionStatus, message string) corev1.Node {
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, Message: message}}},
	}
}

func nodeInstance(name string, capacity int32, usage map[string]v0.SlotOwner, nodes ...string) v0.Instance {
	return v0.Instance{
		ObjectMeta: metav1.ObjectMeta{Namespace: "plant", Name: name},
		Spec:       v0.InstanceSpec{Capacity: capacity, Nodes: nodes, Shared: len(nodes) > 1, DeviceUsage: usage},
	}
}

// nodeFacts are those of nodes with and without agents, devices and failures.
func nodeFacts() *NodeFacts {
	configuration := v0.Configuration{ObjectMeta: metav1.ObjectMeta{Namespace: "plant", Name: "usb"}}
	configuration.Status.DiscoveryFailures = []v0.DiscoveryFailure{
		{Node: "node1", Handler: "udev", Message: "no\x1b[2J\nrule"}, {Node: "node6", Handler: "udev", Message: "no rule"},
	}
	return &NodeFacts{
		System: &System{Pods: []corev1.Pod{
			agentPod("akri-agent-a", "node1", running(corev1.ConditionTrue)), agentPod("akri-agent-b", "node2", running(corev1.ConditionFalse)),
			agentPod("akri-agent-d", "node4", running(corev1.ConditionFalse)),
			agentPod("akri-agent-p", "", corev1.PodStatus{Phase: corev1.PodPending}), // of no DaemonSet, and not scheduled yet
		},
			Nodes: []corev1.Node{
				node("node1", corev1.ConditionTrue, ""), node("node2", corev1.ConditionTrue, ""), node("node3", corev1.ConditionFalse, "NotReady"),
				node("node4", corev1.ConditionUnknown, "Kubelet stopped posting node status."),
			}},
		Instances: []v0.Instance{
			nodeInstance("cam-1", 5, map[string]v0.SlotOwner{
				"cam-1-0": "node1", "cam-1-1": "C:0:node1", "cam-1-2": "node2", "cam-1-3": "", "cam-1-9": "node1",
			}, "node1", "node2"),
			nodeInstance("usb-1", 1, nil, "node1"), nodeInstance("usb-2", 2, map[string]v0.SlotOwner{"usb-2-0": "C:node5"}, "node5"),
		},
		Configurations: []v0.Configuration{configuration},
	}
}

func TestNodes(t *testing.T) {
	var out strings.Builder
	if err := Nodes(&out, nodeFacts().Reports()); err != nil {
		t.Fatal(err)
	}
	const want = `NODE|AGENT|VERSION|DEVICES|SLOTS|FAILURES
node1|ready|v1.2.3|2|2 free, 3 held, 1 taken|1
node2|not ready|v1.2.3|1|1 free, 1 held, 3 taken|0
node3|none|-|0|none|0
node4|not ready|v1.2.3|0|none|0
node5|none|-|1|1 free, 1 taken|0
node6|none|-|0|none|1

node1: discovery of plant/usb fails, handler udev: no\x1b[2J rule
node2: Pod akri-agent-b runs, but its readiness probe fails: kubectl -n akri-system logs akri-agent-b
node4: the node is not Ready: Kubelet stopped posting node status.
node6: discovery of plant/usb fails, handler udev: no rule
`
	if got := regexp.MustCompile("  +").ReplaceAllString(out.String(), "|"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestNodesWithManyFailures shows some of a node's, and how to see the others.
func TestNodesWithManyFailures(t *testing.T) {
	report := NodeReport{Node: "node1", Agent: "ready", Findings: make([]finding.Mistake, 12)}
	var out strings.Builder
	if err := Nodes(&out, []NodeReport{report}); err != nil {
		t.Fatal(err)
	}
	got := out.String()
	if n := strings.Count(got, "node1: "); n != 11 || !strings.HasSuffix(got, "node1: and 2 more: kubectl akri nodes node1\n") {
		t.Errorf("%d lines are about the node:\n%s", n, got)
	}
}

func TestNode(t *testing.T) {
	reports := nodeFacts().Reports()
	for i, want := range map[int]string{
		0: `Node node1  agent ready
  pod      akri-system/akri-agent-a
  version  v1.2.3
  slots    2 free, 3 held, 1 taken

Needs attention:
  discovery of plant/usb fails, handler udev: no\x1b[2J rule

Devices:
  plant/cam-1  1 free, 3 held, 1 taken, shared
  plant/usb-1  1 free
`,
		2: `Node node3  agent none
  pod      none: no DaemonSet of the agent runs there
  slots    none
`,
	} {
		var out strings.Builder
		if err := Node(&out, &reports[i]); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

// TestNodeFindings has the remedies of what needs attention.
func TestNodeFindings(t *testing.T) {
	reports := nodeFacts().Reports()
	for i, want := range [][]finding.Mistake{
		{{Cause: "discovery of plant/usb fails, handler udev: no\x1b[2J\nrule",
			Hint: "kubectl akri nodes node1 shows the agent there; its log and the handler's have more"}},
		{{Cause: reports[1].Problem,
			Hint: "kubectl describe pod -n akri-system akri-agent-b, and kubectl logs -n akri-system akri-agent-b"}},
		nil, // it is meant to have no agent
		{{Cause: reports[3].Problem, Hint: "kubectl describe node node4, and on the node: systemctl status kubelet"}},
	} {
		if got := reports[i].Findings; !slices.Equal(got, want) {
			t.Errorf("%s: got %+v, want %+v", reports[i].Node, got, want)
		}
	}
}

// TestAgentProblem checks why the agent of a Pod is not ready, and which Pod counts while
// one replaces another.
func TestAgentProblem(t *testing.T) {
	now := metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	waits := func(reason, message string) corev1.PodStatus {
		return corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
		}}}
	}
	deleted := agentPod("deleted", "n", running(corev1.ConditionTrue))
	deleted.DeletionTimestamp = &now
	next := agentPod("a", "n", running(corev1.ConditionTrue))
	next.CreationTimestamp = now
	failed := agentPod("failed", "n", corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted"})
	for name, tc := range map[string]struct {
		pods []corev1.Pod
		want string
	}{
		"ready":    {[]corev1.Pod{agentPod("a", "n", running(corev1.ConditionTrue))}, ""},
		"deleted":  {[]corev1.Pod{deleted}, "Pod deleted is being deleted"},
		"replaced": {[]corev1.Pod{next, deleted}, ""},
		"evicted":  {[]corev1.Pod{failed}, "Pod failed is Evicted"},
		"no image": {[]corev1.Pod{agentPod("a", "n", waits("ErrImagePull", "not found"))},
			"Pod a does not run: ErrImagePull: not found"},
		"crashes": {[]corev1.Pod{agentPod("a", "n", waits("CrashLoopBackOff", ""))}, "Pod a does not run: CrashLoopBackOff"},
	} {
		t.Run(name, func(t *testing.T) {
			reports := (&NodeFacts{System: &System{Pods: tc.pods}}).Reports()
			if len(reports) != 1 || reports[0].Node != "n" || reports[0].Problem != tc.want || (reports[0].Agent == "ready") != (tc.want == "") {
				t.Errorf("got %+v, want %q", reports, tc.want)
			}
		})
	}
}
