package view

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func labelsOf(name string) map[string]string {
	return map[string]string{"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "akri"}
}

func workload(kind, name string, wanted, ready int32) Workload {
	return Workload{Kind: kind, Wanted: wanted, Ready: ready,
		ObjectMeta: metav1.ObjectMeta{Namespace: "akri-system", Name: name, Labels: labelsOf(name)}}
}

// installed returns an installation on two nodes that works, after change.
func installed(change func(*System)) *System {
	s := &System{
		Searched: true,
		Workloads: []Workload{workload("Deployment", "akri-controller", 1, 1), workload("Deployment", "akri-webhook", 1, 1),
			workload("DaemonSet", "akri-agent", 2, 2), workload("DaemonSet", "akri-onvif-discovery", 2, 2)},
		Pods: []corev1.Pod{agentPod("agent-a", "node1", running(corev1.ConditionTrue)),
			agentPod("agent-b", "node2", running(corev1.ConditionTrue))},
		Nodes: []corev1.Node{node("node1", corev1.ConditionTrue, ""), node("node2", corev1.ConditionTrue, "")},
	}
	if change != nil {
		change(s)
	}
	return s
}

// TestSystem checks that pages name what is wrong with Akri itself, and what mends it.
func TestSystem(t *testing.T) {
	without := func(names ...string) func(*System) {
		return func(s *System) {
			s.Workloads = slices.DeleteFunc(s.Workloads, func(w Workload) bool { return slices.Contains(names, w.Name) })
		}
	}
	lost := func(name string) func(*System) {
		return func(s *System) {
			for i := range s.Workloads {
				if w := &s.Workloads[i]; w.Name == name {
					w.Ready = 0
				}
			}
		}
	}
	pods := func(s *System, name string, state corev1.ContainerState) {
		p := agentPod(name+"-x", "node2", corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{State: state}}})
		p.Labels = labelsOf(name)
		s.Pods = append(s.Pods, p)
	}
	noImage := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "x:1"}}
	for name, tc := range map[string]struct {
		change   func(*System)
		instance []string // what is said about an Instance that node1 sees
	}{
		"no problem": {nil, []string{"No problem found"}},
		"the controller is scaled to 0": {func(s *System) { s.Workloads[0] = workload("Deployment", "akri-controller", 0, 0) },
			[]string{"Deployment akri-system/akri-controller is not ready, so no objects of devices are created, repaired or deleted:\n" +
				"it has 0 replicas → " +
				"kubectl scale --replicas=1 -n akri-system deployment/akri-controller"}},
		"the controller is gone": {without("akri-controller"),
			[]string{"Akri's controller is not installed: no objects of devices are created, repaired or deleted. → install it again"}},
		"Deployments may not be listed": {func(s *System) { s.Searched, s.Workloads = false, nil }, []string{"No problem found"}},
		"no webhook is wanted":          {without("akri-webhook"), []string{"No problem found"}},
		"Akri is gone": {func(s *System) { s.Workloads, s.Pods = nil, nil },
			[]string{"Akri's agent is not installed", "Akri's controller is not installed"}},
		"the webhook has no image": {
			func(s *System) {
				lost("akri-webhook")(s)
				s.Workloads[1].Annotations = map[string]string{"deployment.kubernetes.io/revision": "2"}
				pods(s, "akri-webhook", noImage)
			},
			[]string{"Deployment akri-system/akri-webhook is not ready, so the API server rejects new and changed Configurations:\n" +
				"Pod akri-webhook-x does not run: ImagePullBackOff: x:1 → " +
				"kubectl rollout undo -n akri-system deployment/akri-webhook if its last change is the cause; else kubectl"}},
		"the agents' DaemonSet is gone": {func(s *System) { without("akri-agent")(s); s.Pods = nil },
			[]string{"Akri's agent is not installed: no devices are found, and Pods get none. → install it again"}},
		"the agents run nowhere": {
			func(s *System) {
				s.Workloads[2], s.Pods = workload("DaemonSet", "akri-agent", 0, 0), nil
				s.Workloads[2].Pod.NodeSelector = map[string]string{"iot": "yes"}
			},
			[]string{"DaemonSet akri-system/akri-agent is not ready, so no devices are found, and Pods get none:\n" +
				"no node matches its nodeSelector and tolerations → if it should run there: correct nodeSelector"}},
		"a nodeSelector excludes the agent of the node": {
			func(s *System) { s.Pods, s.Workloads[2].Pod.NodeSelector = s.Pods[1:], map[string]string{"iot": "yes"} },
			[]string{"the nodeSelector of DaemonSet akri-agent requires iot=yes, which node node1 does not have → if it should run there"}},
		"a taint excludes the agent of the node": {
			func(s *System) {
				s.Pods = s.Pods[1:]
				s.Nodes[0].Spec.Taints = []corev1.Taint{{Key: "node.kubernetes.io/unschedulable", Effect: corev1.TaintEffectNoSchedule},
					{Key: "soft", Effect: corev1.TaintEffectPreferNoSchedule}, {Key: "gpu", Value: "a", Effect: corev1.TaintEffectNoSchedule}}
			},
			[]string{"Node node1, which sees the device, has no working agent: " +
				"DaemonSet akri-agent does not tolerate the taint gpu=a:NoSchedule of node node1 → " +
				"if it should run there: correct nodeSelector or tolerations of the DaemonSet"}},
		"the agent of the node crashes": {
			func(s *System) { s.Pods[0].Status = waiting("", "CrashLoopBackOff", "").Status },
			[]string{"Node node1, which sees the device, has no working agent: Pod agent-a does not run: CrashLoopBackOff → " +
				"kubectl describe pod -n akri-system agent-a, and kubectl logs -n akri-system agent-a"}},
		"the agent of another node crashes": {func(s *System) { s.Pods[1].Status = waiting("", "CrashLoopBackOff", "").Status },
			[]string{"No problem found"}},
		"the kubelet is down": {func(s *System) { s.Nodes[0] = node("node1", corev1.ConditionUnknown, "") },
			[]string{"Node node1, which sees the device, is not Ready. → kubectl describe node node1, and on the node"}},
		"the controller finds no node": {
			func(s *System) {
				s.Workloads[0].Ready = 0
				p := pending("controller-x", "cpu", "0/2 nodes are available: 2 Insufficient cpu.")
				p.Namespace, p.Labels = "akri-system", labelsOf("akri-controller")
				s.Pods = append(s.Pods, p)
			},
			[]string{"akri-controller is not ready, so no objects of devices are created, repaired or deleted:\n" +
				"Pod controller-x cannot be scheduled: 0/2 nodes are available: 2 Insufficient cpu. → kubectl describe pod"}},
		"the agent of the node finds no room": {
			func(s *System) {
				p := pending("agent-a", "cpu", "1 Insufficient memory.")
				p.Labels = labelsOf("akri-agent")
				p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
						MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: "In", Values: []string{"node1"}}},
					}}},
				}}
				s.Pods[0] = p
			},
			[]string{"Node node1, which sees the device, has no working agent: " +
				"Pod agent-a cannot be scheduled: 1 Insufficient memory. → kubectl describe pod"}},
		"Akri is not in the namespace of -n": {func(s *System) { without("akri-agent")(s); s.Pods, s.Namespace = nil, "x" },
			[]string{"Akri's agent is not in namespace x (-n): no devices are found, and Pods get none. → without -n"}},
	} {
		t.Run(name, func(t *testing.T) {
			compare(t, healthy(func(f *Facts) { f.System = installed(tc.change) }), tc.instance)
		})
	}
}
