package view

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
)

// healthy returns the facts of a device without problems, after change.
func healthy(change func(*Facts)) *Facts {
	f := &Facts{
		Instance: &v0.Instance{
			ObjectMeta: metav1.ObjectMeta{Namespace: "plant", Name: "cam-1"},
			Spec: v0.InstanceSpec{
				ConfigurationName: "cam", Capacity: 2, Nodes: []string{"node1"},
				BrokerProperties: map[string]string{"B": "2", "A": "1"},
				DeviceUsage:      map[string]v0.SlotOwner{"cam-1-0": "node1"},
			},
			Status: v0.InstanceStatus{
				Conditions: append(conditions(v0.ConditionApplied, metav1.ConditionTrue, v0.ReasonApplied, "1 object is as rendered"),
					conditions(v0.ConditionReady, metav1.ConditionTrue, v0.ReasonReady, "1 object is ready")...),
				Resources: []v0.ResourceStatus{{Version: "v1", Kind: "Pod", Namespace: "plant", Name: "one", Ready: true}},
			},
		},
		Configuration: &v0.Configuration{ObjectMeta: metav1.ObjectMeta{Namespace: "plant", Name: "cam"},
			Spec: v0.ConfigurationSpec{DiscoveryHandler: v0.DiscoveryHandler{Name: "onvif"}}},
		Pods:    []corev1.Pod{pod("one", "node1", "akri.sh/cam-1")},
		AllPods: true,
		System:  &System{Nodes: []corev1.Node{node("node1", corev1.ConditionTrue, "")}},
		Now:     time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC),
	}
	if change != nil {
		change(f)
	}
	return f
}

func pod(name, node, asks string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "plant", Name: name},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Name: "broker", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceName(asks): resource.MustParse("1")}},
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

func pending(name, asks, message string) corev1.Pod {
	p := pod(name, "", asks)
	p.Status.Phase = corev1.PodPending
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable",
		Message: message}}
	return p
}

func waiting(name, reason, message string) corev1.Pod {
	p := pod(name, "node1", "akri.sh/cam-1")
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "broker",
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
	return p
}

// failedOf returns a Pod of a controller that the kubelet has rejected.
func failedOf(name, owner string, created time.Time) corev1.Pod {
	p := pod(name, "node1", "akri.sh/cam-1")
	p.CreationTimestamp = metav1.NewTime(created)
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: owner, UID: types.UID(owner), Controller: new(true)}}
	p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "UnexpectedAdmissionError", Message: "slot taken"}
	return p
}

func TestConclude(t *testing.T) {
	const short = "0/1 nodes are available: 1 Insufficient akri.sh/cam-1."
	failed := func(reason, message string) func(*Facts) {
		return func(f *Facts) {
			f.Instance.Status.Conditions = conditions(v0.ConditionApplied, metav1.ConditionFalse, reason, message)
		}
	}
	cases := map[string]struct {
		change func(*Facts)
		want   []string // part of the problem and, after an arrow, of the remedy
	}{
		"healthy": {nil, []string{"No problem found"}},
		"being deleted": {
			func(f *Facts) {
				f.Instance.DeletionTimestamp, f.Instance.Finalizers = &metav1.Time{Time: f.Now}, []string{"akri.sh/x"}
			},
			[]string{"being deleted. → it is deleted once its finalizers are removed: akri.sh/x"},
		},
		"no Configuration": {func(f *Facts) { f.Configuration = nil }, []string{"Configuration cam does not exist"}},
		"no node sees it": {
			func(f *Facts) {
				f.Instance.Spec.Nodes = nil
				f.Configuration.Status.DiscoveryFailures = []v0.DiscoveryFailure{{Node: "node2", Handler: "onvif", Message: "no route"}}
			},
			[]string{"No node sees the device.\nDiscovery fails on node node2, handler onvif: no route → check that the device is switched on"},
		},
		"node gone": {func(f *Facts) { f.System.Nodes = []corev1.Node{} },
			[]string{"Node node1, which sees the device, does not exist. → kubectl describe node node1"}},
		"node down": {
			func(f *Facts) { f.System.Nodes[0] = node("node1", corev1.ConditionUnknown, "no news") },
			[]string{"Node node1, which sees the device, is not Ready: no news."},
		},
		"nodes may not be read": {func(f *Facts) { f.System.Nodes = nil }, []string{"No problem found"}},
		"no controller": {func(f *Facts) { f.Instance.Status = v0.InstanceStatus{} },
			[]string{"The controller has not reconciled the Instance yet. → check that akri-controller is running"}},
		"wrong templates": {
			func(f *Facts) {
				failed(v0.ReasonInvalidTemplate, "x")(f) // the same problem: reported once
				f.Configuration.Status.Conditions = conditions(v0.ConditionAccepted, metav1.ConditionFalse, v0.ReasonInvalidTemplate,
					"instanceBrokerResources[0].data.k: no end")
			},
			[]string{"not accepted (InvalidTemplate); nothing changes until they are corrected:\ninstanceBrokerResources[0].data.k: no end → " +
				"correct"},
		},
		"property missing": {
			failed(v0.ReasonRenderFailed, `property "FOO" does not exist`),
			[]string{`could be applied (RenderFailed):` + "\n" + `property "FOO" does not exist → the device has the properties A, B;`},
		},
		"forbidden": {failed(v0.ReasonForbidden, "m"), []string{"(Forbidden):\nm → kubectl akri rbac -n plant cam | kubectl apply -f -"}},
		"conflict":  {failed(v0.ReasonConflict, "m"), []string{"(Conflict):\nm → kubectl akri diff -n plant cam"}},
		"all slots held": {
			func(f *Facts) {
				f.Instance.Spec.DeviceUsage["cam-1-1"] = "node1"
				f.Pods = append(f.Pods, pod("two", "node1", "akri.sh/cam-1"), pending("three", "akri.sh/cam-1", short))
			},
			[]string{"Pod three waits for akri.sh/cam-1: all 2 slots are in use on node1 (Pod one, Pod two). → delete a Pod"},
		},
		"the only slot, through the Configuration": {
			func(f *Facts) {
				f.Instance.Spec.Capacity = 1
				f.Instance.Spec.DeviceUsage["cam-1-0"] = "C:0:node1"
				group := pod("any", "node1", "akri.sh/cam")
				group.Namespace = "office"
				f.Pods = []corev1.Pod{group, pending("three", "akri.sh/cam-1", short)}
			},
			[]string{"the only slot is in use on node1 (Pod office/any)."},
		},
		"a slot that nobody uses any more": {
			func(f *Facts) {
				f.Instance.Spec.Capacity = 1
				f.Pods = []corev1.Pod{pending("three", "akri.sh/cam-1", short)}
			},
			[]string{"the only slot is in use on node1. → the agent frees a slot within minutes after its Pod has terminated: " +
				"kubectl akri nodes node1",
				"Slot cam-1-0 is in use on node node1, but no Pod there requests the device."},
		},
		"slots free where the Pod may not run": {
			func(f *Facts) { f.Pods = append(f.Pods, pending("three", "akri.sh/cam-1", short)) },
			[]string{"1 of 2 slots are free, on node1. The scheduler reports: " + short +
				" → the Pod must be able to run on a node that sees the device"},
		},
		"insufficient memory": {
			func(f *Facts) { f.Pods = append(f.Pods, pending("three", "akri.sh/cam-1", "1 Insufficient memory.")) },
			[]string{"Pod three cannot be scheduled: 1 Insufficient memory. → the Pod must be able to run on a node that sees the device"},
		},
		"any device": {
			func(f *Facts) {
				f.Pods = append(f.Pods, pending("any", "akri.sh/cam", "1 Insufficient akri.sh/cam."))
			},
			[]string{
				"Pod any waits for akri.sh/cam, any device of the Configuration: 1 Insufficient akri.sh/cam. → kubectl akri why configuration/cam",
			},
		},
		"rejected by the kubelet": {
			func(f *Facts) {
				f.Pods = append(f.Pods, failedOf("two", "set", f.Now))
			},
			[]string{"Pod two has failed on node1: UnexpectedAdmissionError: slot taken → it is replaced with increasing back-off"},
		},
		"failed, and nobody replaces it": {
			func(f *Facts) {
				f.Pods = append(f.Pods, failedOf("two", "set", f.Now))
				f.Pods[1].OwnerReferences = nil
			},
			[]string{"Pod two has failed on node1: UnexpectedAdmissionError: slot taken → create it again"},
		},
		"failed and replaced long ago": {
			func(f *Facts) {
				next := failedOf("three", "set", f.Now)
				next.Status = corev1.PodStatus{Phase: corev1.PodRunning}
				f.Pods = append(f.Pods, failedOf("two", "set", f.Now.Add(-time.Hour)), next)
			},
			[]string{"No problem found"},
		},
		"failed, and a younger Pod of the Instance is another": {
			func(f *Facts) {
				next := failedOf("three", "cam-1", f.Now)
				next.Status = corev1.PodStatus{Phase: corev1.PodRunning}
				f.Pods = append(f.Pods, failedOf("two", "cam-1", f.Now.Add(-time.Hour)), next)
				f.Pods[1].OwnerReferences[0].Kind = "Instance"
			},
			[]string{"Pod two has failed"},
		},
		"another device's replacement failed, too": {
			func(f *Facts) {
				f.Pods = append(f.Pods, failedOf("two", "set", f.Now.Add(-time.Hour)), failedOf("three", "other", f.Now))
			},
			[]string{"Pod two has failed", "Pod three has failed"},
		},
		"image": {
			func(f *Facts) { f.Pods = []corev1.Pod{waiting("one", "ImagePullBackOff", "no such image")} },
			[]string{"Pod one is on node1, but its container broker is not running: ImagePullBackOff: no such image → kubectl describe pod -n " +
				"plant one"},
		},
		"crash": {
			func(f *Facts) { f.Pods = []corev1.Pod{waiting("one", "CrashLoopBackOff", "")} },
			[]string{"CrashLoopBackOff → kubectl logs -n plant one -c broker --previous"},
		},
		"starting": {func(f *Facts) { f.Pods = []corev1.Pod{waiting("one", "ContainerCreating", "")} }, []string{"No problem found"}},
		"slot without Pod": {
			func(f *Facts) { f.Pods = nil },
			[]string{"Slot cam-1-0 is in use on node node1, but no Pod there requests the device. → the agent there frees it"},
		},
		"Pods of other namespaces may not be listed": {func(f *Facts) { f.Pods, f.AllPods = nil, false }, []string{"No problem found"}},
		"object not ready": {
			func(f *Facts) {
				f.Instance.Status.Resources = []v0.ResourceStatus{{Kind: "PersistentVolumeClaim", Name: "disk", Reason: "PVC is not Bound"}}
			},
			[]string{"PersistentVolumeClaim disk is not ready: PVC is not Bound → kubectl describe persistentvolumeclaim -n plant disk"},
		},
		"object that a finalizer holds": {
			func(f *Facts) {
				f.Instance.Status.Resources = []v0.ResourceStatus{{Kind: "ConfigMap", Name: "c",
					Reason: "waiting for the former ConfigMap to be deleted"}}
			},
			[]string{"ConfigMap c is not ready: waiting for the former ConfigMap to be deleted → kubectl get configmap -n plant c -o yaml shows"},
		},
		"object of a kind that has the name of another": {
			func(f *Facts) {
				f.Instance.Status.Resources = []v0.ResourceStatus{{Group: "serving.knative.dev", Kind: "Service", Name: "cam", Reason: "no revision"}}
			},
			[]string{"Service.serving.knative.dev cam is not ready: no revision → kubectl describe service.serving.knative.dev -n plant cam"},
		},
		"the Pod's problem explains its Deployment's": {
			func(f *Facts) {
				f.Instance.Status.Resources = []v0.ResourceStatus{{Kind: "Deployment", Name: "d"}}
				f.Pods = []corev1.Pod{waiting("one", "CrashLoopBackOff", "")}
			},
			[]string{"Pod one is on node1"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			compare(t, healthy(tc.change), tc.want)
		})
	}
}

func TestWhy(t *testing.T) {
	f := healthy(func(f *Facts) {
		other := pod("any", "", "akri.sh/cam")
		other.Namespace, other.Status.Phase = "office", corev1.PodPending
		f.Pods = append(f.Pods, other)
		for minute := range 10 {
			f.Events = append(f.Events, corev1.Event{
				InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "one"}, Reason: "Tick", Message: "tock\n",
				LastTimestamp: metav1.Time{Time: f.Now.Add(-time.Duration(minute) * time.Minute)},
			})
		}
	})
	var out strings.Builder
	f.Conclude()
	if err := f.Text(&out); err != nil {
		t.Fatal(err)
	}
	head, tail, _ := strings.Cut(out.String(), "\nLatest events:\n")
	const want = `Instance plant/cam-1  Ready
  found by   Configuration cam, handler onvif
  seen from  node1
  slot       cam-1-0  used on node1  by Pod one
  slot       cam-1-1  free

Conditions:
  Applied=True  Applied: 1 object is as rendered
  Ready=True  Ready: 1 object is ready

Objects:
  Pod one  ready

Pods that request the device:
  Pod one  on node1  Running
  Pod office/any  on no node yet, for any of the Configuration's devices  Pending
`
	if head != want {
		t.Errorf("got\n%s\nwant\n%s", head, want)
	}
	if n := strings.Count(tail, "Tick: tock"); n != maxEvents || !strings.HasPrefix(tail, "  7m ago  Pod one  Tick: tock\n") ||
		!strings.HasSuffix(tail, "are ready.\n") {
		t.Errorf("got %d events, want the latest %d in order:\n%s", n, maxEvents, tail)
	}
}
