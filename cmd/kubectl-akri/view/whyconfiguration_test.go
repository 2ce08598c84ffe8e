package view

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
)

// served returns the facts of a Configuration with two devices and no problems, after
// change.
func served(change func(*Facts)) *Facts {
	instance := func(name string, usage map[string]v0.SlotOwner, nodes ...string) v0.Instance {
		return v0.Instance{
			ObjectMeta: metav1.ObjectMeta{Namespace: "plant", Name: name},
			Spec:       v0.InstanceSpec{ConfigurationName: "cam", Capacity: 1, Nodes: nodes, DeviceUsage: usage},
			Status:     v0.InstanceStatus{Conditions: conditions(v0.ConditionReady, metav1.ConditionTrue, v0.ReasonReady, "")},
		}
	}
	f := &Facts{
		Configuration: &v0.Configuration{
			ObjectMeta: metav1.ObjectMeta{Namespace: "plant", Name: "cam"},
			Spec:       v0.ConfigurationSpec{DiscoveryHandler: v0.DiscoveryHandler{Name: "onvif"}},
			Status: v0.ConfigurationStatus{
				Conditions: conditions(v0.ConditionReady, metav1.ConditionTrue, v0.ReasonReady, "all are ready"),
				Resources:  []v0.ResourceStatus{{Kind: "Service", Name: "cam-svc", Ready: true}},
			},
		},
		Instances: []v0.Instance{
			instance("cam-1", map[string]v0.SlotOwner{"cam-1-0": "C:0:node1"}, "node1", "node2"),
			instance("cam-2", nil, "node2"),
		},
		Pods:    []corev1.Pod{pod("one", "node1", "akri.sh/cam")},
		AllPods: true,
		Now:     time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC),
	}
	if change != nil {
		change(f)
	}
	return f
}

// missingHandler changes the Configuration to one whose handler no node has.
func missingHandler(f *Facts, name string) {
	f.Instances, f.Pods = nil, nil
	f.Configuration.Spec.DiscoveryHandler.Name = name
	f.Configuration.Status.Conditions = conditions(v0.ConditionDiscovering, metav1.ConditionFalse, v0.ReasonHandlerMissing, "deploy it")
	for _, node := range []string{"node1", "node2"} {
		f.Configuration.Status.DiscoveryFailures = append(f.Configuration.Status.DiscoveryFailures,
			v0.DiscoveryFailure{Node: node, Handler: name, Message: v0.MessageHandlerMissing})
	}
}

// compare checks that each finding, or the sentence that there is none, contains the
// wanted text at the same place.
func compare(t *testing.T, facts *Facts, want []string) {
	t.Helper()
	facts.Conclude()
	var got []string
	for _, finding := range facts.Findings {
		got = append(got, strings.TrimSuffix(finding.Cause+" → "+finding.Hint, " → "))
	}
	if len(got) == 0 {
		got = []string{"No problem found: " + facts.health() + "."}
	}
	if !slices.EqualFunc(got, want, strings.Contains) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func TestConcludeConfiguration(t *testing.T) {
	const short = "0/2 nodes are available: 2 Insufficient akri.sh/cam."
	wants := func(pod corev1.Pod, amount string) corev1.Pod {
		pod.Spec.Containers[0].Resources.Limits["akri.sh/cam"] = quantity(amount)
		return pod
	}
	noImage := installed(func(s *System) {
		s.Workloads = append(s.Workloads, workload("DaemonSet", "akri-debug-echo-discovery", 2, 0))
		p := agentPod("echo-x", "node1", waiting("", "ImagePullBackOff", "x:1").Status)
		p.Labels = labelsOf("akri-debug-echo-discovery")
		s.Pods = append(s.Pods, p)
	})
	const handlerDown = "DaemonSet akri-system/akri-debug-echo-discovery is not ready, so devices of this kind are not found:\n" +
		"Pod echo-x does not run: ImagePullBackOff: x:1 → kubectl describe pod"
	for name, c := range map[string]struct {
		change func(*Facts)
		want   []string
	}{
		"no problem": {nil, []string{"No problem found"}},
		"being deleted": {
			func(f *Facts) {
				f.Configuration.DeletionTimestamp, f.Configuration.Finalizers = &metav1.Time{Time: f.Now}, []string{"akri.sh/x"}
			},
			[]string{"being deleted. → it is deleted once its finalizers are removed: akri.sh/x"},
		},
		"no controller": {
			func(f *Facts) { f.Configuration.Status = v0.ConfigurationStatus{} },
			[]string{"has not reconciled the Configuration yet. → check that akri-controller is running"},
		},
		"wrong templates": {
			func(f *Facts) {
				f.Configuration.Status.Conditions = append(
					conditions(v0.ConditionAccepted, metav1.ConditionFalse, v0.ReasonInvalidTemplate, "no end"),
					conditions(v0.ConditionApplied, metav1.ConditionFalse, v0.ReasonInvalidTemplate, "no end")...)
			},
			[]string{"not accepted (InvalidTemplate); nothing changes until they are corrected:\nno end → correct the Configuration"},
		},
		"the handler has no image": {
			func(f *Facts) { missingHandler(f, "debugEcho"); f.System = noImage },
			[]string{handlerDown},
		},
		"the handler has no image, and no agent has reported it yet": {
			func(f *Facts) {
				missingHandler(f, "debugEcho")
				f.System, f.Configuration.Status.DiscoveryFailures = noImage, nil
			},
			[]string{handlerDown},
		},
		"the handler has no image, and an agent refuses another": {
			func(f *Facts) {
				missingHandler(f, "debugEcho")
				f.System, f.Configuration.Status.DiscoveryFailures[1].Message = noImage, "the discovery handler may not register"
			},
			[]string{handlerDown, "Discovery fails on node node2, handler debugEcho: the discovery handler may not register"},
		},
		"a handler without an image that nobody misses": {
			func(f *Facts) { f.System, f.Configuration.Spec.DiscoveryHandler.Name = noImage, "debugEcho" },
			[]string{"No problem found"},
		},
		"discovery fails": {
			func(f *Facts) {
				f.Instances = nil
				f.Configuration.Status.DiscoveryFailures = []v0.DiscoveryFailure{{Node: "node2", Handler: "onvif", Message: "no route"}}
			},
			[]string{"Discovery fails on node node2, handler onvif: no route → kubectl akri nodes node2"},
		},
		"a Secret that agents may not read": {
			func(f *Facts) {
				f.Configuration.Status.DiscoveryFailures = []v0.DiscoveryFailure{{Node: "node2", Handler: "onvif",
					Message: "forbidden: allow it with kubectl akri rbac -n plant cam | kubectl apply -f -; and more"}}
			},
			[]string{"handler onvif: forbidden: allow it with kubectl akri rbac -n plant cam | kubectl apply -f -; and more → " +
				"kubectl akri rbac -n plant cam | kubectl apply -f -"},
		},
		"a Secret that agents may not read for a Configuration that will be gone": {
			func(f *Facts) {
				f.Configuration.Labels = map[string]string{v0.LabelDiscoverUntil: "1"}
				f.Configuration.Status.DiscoveryFailures = []v0.DiscoveryFailure{{Node: "node2", Handler: "onvif",
					Message: "forbidden: allow it with kubectl akri rbac -n plant cam | kubectl apply -f -"}}
			},
			[]string{"handler onvif: forbidden → kubectl akri rbac -f FILE | kubectl apply -f - allows it"},
		},
		"a handler that an agent refuses, and others do not have": {
			func(f *Facts) {
				missingHandler(f, "onvif")
				f.Configuration.Status.Conditions = nil
				f.Configuration.Status.DiscoveryFailures[1].Message = "the discovery handler may not register"
			},
			[]string{"has not reconciled",
				"Discovery fails on node node2, handler onvif: the discovery handler may not register → kubectl akri nodes node2"},
		},
		"a handler that is not installed": {
			func(f *Facts) { missingHandler(f, "onvif") },
			[]string{"No device can be found: deploy it → with the chart, --set handlers.onvif.enabled=true installs this one"},
		},
		"a misspelled handler": {
			func(f *Facts) { missingHandler(f, "udve") },
			[]string{"Akri has no handler with this name, only debugEcho, http, mdns, mqtt, onvif, opcua, udev"},
		},
		"nothing found": {
			func(f *Facts) { f.Instances = nil },
			[]string{"the handler onvif finds none, or runs on no node. → check on which nodes agents (kubectl akri nodes) and Pods of onvif run"},
		},
		"an object for all": {
			func(f *Facts) {
				f.Configuration.Status.Conditions = conditions(v0.ConditionApplied, metav1.ConditionFalse, v0.ReasonForbidden, "m")
			},
			[]string{"could be applied (Forbidden):\nm → kubectl akri rbac -n plant cam"},
		},
		"Instances": {
			func(f *Facts) {
				f.Configuration.Status.Conditions = conditions(v0.ConditionApplied, metav1.ConditionFalse, v0.ReasonInstancesFailing, "two")
				for i := range f.Instances {
					f.Instances[i].Status.Conditions = conditions(v0.ConditionReady, metav1.ConditionFalse, v0.ReasonProgressing, "Pod x")
				}
			},
			[]string{"2 of 2 Instances are not ready. The first is cam-1: Progressing: Pod x → kubectl akri why instance/cam-1"},
		},
		"an object": {
			func(f *Facts) {
				f.Configuration.Status.Resources[0] = v0.ResourceStatus{Kind: "Service", Name: "cam-svc", Reason: "no address"}
			},
			[]string{"Service cam-svc is not ready: no address → kubectl describe service -n plant cam-svc"},
		},
		"two devices on one node": {
			func(f *Facts) { f.Pods = append(f.Pods, wants(pending("two", "akri.sh/cam", short), "2")) },
			[]string{"Pod two waits for 2 devices of akri.sh/cam; devices with a free slot: 0 of 1 on node1, 1 of 2 on node2.\n" +
				"In use: cam-1-0 used on node1 through akri.sh/cam (id 0)  by Pod one. → delete a Pod"},
		},
		"an update of the group's Deployment": {
			func(f *Facts) {
				f.Pods = []corev1.Pod{revision(wants(pod("old", "node2", "akri.sh/cam"), "2"), "a"),
					revision(wants(pending("new", "akri.sh/cam", short), "2"), "b")}
			},
			[]string{"is meant to replace Pod old, which Deployment cam-1 stops only when the new Pod is ready. → stop the old Pod first"},
		},
		"more than there are": {
			func(f *Facts) {
				f.Pods = []corev1.Pod{wants(pending("two", "akri.sh/cam", short), "3")}
				f.Instances[0].Spec.DeviceUsage = nil
			},
			[]string{"1 of 1 on node1, 2 of 2 on node2. → request fewer devices: no node sees as many"},
		},
		"free, but elsewhere": {
			func(f *Facts) { f.Pods = append(f.Pods, pending("two", "akri.sh/cam", short)) },
			[]string{"Pod two waits for 1 device of akri.sh/cam. Enough of them have a free slot, on node1, node2. The scheduler reports: 0/2"},
		},
		"no node": {
			func(f *Facts) {
				for i := range f.Instances {
					f.Instances[i].Spec.Nodes = nil
				}
				f.Pods = append(f.Pods, pending("two", "akri.sh/cam", short))
			},
			[]string{"Pod two waits for 1 device of akri.sh/cam, but no node sees any."},
		},
		"other Pods": {
			func(f *Facts) {
				crash := waiting("crash", "CrashLoopBackOff", "")
				crash.Spec.Containers = pod("", "", "akri.sh/cam").Spec.Containers
				f.Pods = append(f.Pods, crash, pending("memory", "akri.sh/cam", "1 Insufficient memory."),
					pending("of-one-device", "akri.sh/cam-1", "1 Insufficient akri.sh/cam-1."))
			},
			[]string{"Pod crash is on node1", "Pod memory cannot be scheduled: 1 Insufficient memory."},
		},
	} {
		t.Run(name, func(t *testing.T) { compare(t, served(c.change), c.want) })
	}
}

func TestWhyConfiguration(t *testing.T) {
	var out strings.Builder
	f := served(nil)
	f.Conclude()
	if err := f.Text(&out); err != nil {
		t.Fatal(err)
	}
	const want = `Configuration plant/cam  Ready
  handler    onvif
  devices    2 Instances, 2 ready
  resource   akri.sh/cam, for any of the devices: 1 of 2 slots free

Conditions:
  Ready=True  Ready: all are ready

Devices:
  Instance cam-1  on node1, node2  Ready, 0 of 1 slot free
  Instance cam-2  on node2  Ready, 1 of 1 slot free

Objects:
  Service cam-svc  ready

Pods that request akri.sh/cam:
  Pod one  on node1  Running

Conclusion:
  No problem found: devices were found, and all objects exist and are ready.
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
