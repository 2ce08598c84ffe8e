package view

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func labelsOf(name string) map[string]string {
	return map[string]string{"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "akri"}
}

func workload(kind, name string, wanted, ready int32) Workload {
	w := Workload{TypeMeta: metav1.TypeMeta{Kind: kind}, ObjectMeta: metav1.ObjectMeta{
		Namespace: "akri-system", Name: name, Labels: labelsOf(name),
	}}
	if w.Status.DesiredNumberScheduled, w.Status.NumberReady = wanted, ready; kind == "Deployment" {
		w.Spec.Replicas = &wanted
	}
	return w
}

// installed returns an installation on two nodes that works, after change.
func installed(change func(*System)) *System {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	s := &System{
		Namespace: "akri-system", Searched: true, Guarded: true,
		Workloads: []Workload{workload("Deployment", "akri-controller", 1, 1), workload("Deployment", "akri-webhook", 1, 1),
			workload("DaemonSet", "akri-agent", 2, 2), workload("DaemonSet", "akri-onvif-discovery", 2, 2)},
		Pods: []corev1.Pod{agentPod("agent-a", "node1", running(corev1.ConditionTrue)),
			agentPod("agent-b", "node2", running(corev1.ConditionTrue))},
		Nodes:   []corev1.Node{node("node1", corev1.ConditionTrue, ""), node("node2", corev1.ConditionTrue, "")},
		Renewed: map[string]time.Time{"node1": now, "node2": now},
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
					w.Status.NumberReady = 0
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
		"all is well": {nil, []string{"No problem found"}},
		"the controller is scaled to 0": {func(s *System) { s.Workloads[0] = workload("Deployment", "akri-controller", 0, 0) },
			[]string{"Deployment akri-system/akri-controller is not ready, so no objects of devices are created, repaired or deleted:\n" +
				"it has 0 replicas → " +
				"kubectl scale --replicas=1 -n akri-system deployment/akri-controller"}},
		"the controller is gone": {without("akri-controller"),
			[]string{"Akri's controller is not installed: no objects of devices are created, repaired or deleted. → install it again"}},
		"Deployments may not be listed": {func(s *System) { s.Searched, s.Workloads = false, nil }, []string{"No problem found"}},
		"the webhook is gone": {without("akri-webhook"),
			[]string{"Akri's webhook is not installed: the API server rejects new and changed Configurations. → install it again"}},
		"no webhook is wanted": {func(s *System) { without("akri-webhook")(s); s.Guarded = false }, []string{"No problem found"}},
		"Akri is gone": {func(s *System) { s.Workloads, s.Pods = nil, nil },
			[]string{"Akri's agent is not installed", "Akri's controller is not installed", "Akri's webhook is not installed"}},
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
				s.Workloads[2].Spec.Template.Spec.NodeSelector = map[string]string{"iot": "yes"}
			},
			[]string{"DaemonSet akri-system/akri-agent is not ready, so no devices are found, and Pods get none:\n" +
				"the nodeSelector of DaemonSet akri-agent wants iot=yes, which node node1 does not have → " +
				"kubectl label node --overwrite node1 iot=yes"}},
		"a taint excludes the agent of the node": {
			func(s *System) {
				s.Pods = s.Pods[1:]
				s.Nodes[0].Spec.Taints = []corev1.Taint{{Key: "node.kubernetes.io/unschedulable", Effect: corev1.TaintEffectNoSchedule},
					{Key: "soft", Effect: corev1.TaintEffectPreferNoSchedule}, {Key: "gpu", Value: "a", Effect: corev1.TaintEffectNoSchedule}}
			},
			[]string{"Node node1, which sees the device, has no agent that works: " +
				"DaemonSet akri-agent does not tolerate the taint gpu=a:NoSchedule of node node1 → " +
				"kubectl taint node node1 gpu=a:NoSchedule-"}},
		"the agent of the node crashes": {
			func(s *System) { s.Pods[0].Status = waiting("", "CrashLoopBackOff", "").Status },
			[]string{"Node node1, which sees the device, has no agent that works: Pod agent-a does not run: CrashLoopBackOff → " +
				"kubectl describe pod -n akri-system agent-a, and kubectl logs -n akri-system agent-a"}},
		"the agent of another node crashes": {func(s *System) { s.Pods[1].Status = waiting("", "CrashLoopBackOff", "").Status },
			[]string{"No problem found"}},
		"the kubelet is down": {func(s *System) { s.Renewed["node1"] = s.Renewed["node2"].Add(-27 * time.Second) },
			[]string{"Node node1, which sees the device, is silent: its kubelet has not renewed its Lease since 11:59:33 UTC. → " +
				"kubectl describe node node1, and on the node"}},
		"the handler has no image on a node": {
			func(s *System) { s.Workloads[3].Status.NumberReady = 1; pods(s, "akri-onvif-discovery", noImage) },
			[]string{"DaemonSet akri-system/akri-onvif-discovery is not ready, so the handler does not find devices there:\n" +
				"Pod akri-onvif-discovery-x does not run: ImagePullBackOff: x:1 → kubectl describe pod"}},
		"the handler creates no Pods": {lost("akri-onvif-discovery"),
			[]string{"DaemonSet akri-system/akri-onvif-discovery is not ready, so the handler does not find devices there:\n" +
				"it has no Pods → kubectl events -n akri-system"}},
	} {
		t.Run(name, func(t *testing.T) {
			compare(t, healthy(func(f *Facts) { f.System = installed(tc.change) }), tc.instance)
		})
	}
}

// TestHandlersOnNodes checks that the page of a node names handlers that do not run there.
func TestHandlersOnNodes(t *testing.T) {
	system := installed(nil)
	p := agentPod("onvif-x", "node2", waiting("", "ImagePullBackOff", "x:1").Status)
	p.Labels = labelsOf("akri-onvif-discovery")
	system.Pods = append(system.Pods, p)
	reports := (&NodeFacts{System: system}).Reports()
	got := slices.Concat(reports[0].notes(), reports[1].notes())
	want := []string{"handler onvif: Pod onvif-x does not run: ImagePullBackOff: x:1"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
