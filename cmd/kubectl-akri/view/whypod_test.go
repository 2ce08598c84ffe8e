package view

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func quantity(text string) resource.Quantity { return resource.MustParse(text) }

// podFacts returns the facts of a Pod that requests the device cam-1.
func podFacts(pod corev1.Pod, change func(*Facts)) *Facts {
	device := healthy(change)
	device.Pods = append(device.Pods, pod)
	return &Facts{Pod: &pod, Requested: []*Facts{device}, AllPods: true, Now: device.Now}
}

// revision makes a Pod one of a revision of the Deployment cam-1.
func revision(pod corev1.Pod, hash string) corev1.Pod {
	pod.Labels = map[string]string{"pod-template-hash": hash}
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "cam-1-" + hash, Controller: new(true)}}
	return pod
}

func TestConcludePod(t *testing.T) {
	const both = "0/1 nodes are available: 1 Insufficient akri.sh/cam-1, 1 Insufficient akri.sh/cam."
	taken := func(f *Facts) { f.Instance.Spec.DeviceUsage["cam-1-1"] = "node1" }
	failed := pod("two", "node1", "akri.sh/cam-1")
	failed.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "UnexpectedAdmissionError", Message: "slot taken"}
	ofBoth := pending("two", "akri.sh/cam-1", both)
	ofBoth.Spec.Containers[0].Resources.Limits["akri.sh/cam"] = quantity("2")
	ofTwo := pending("two", "akri.sh/cam-1", "1 Insufficient akri.sh/cam-1.")
	ofTwo.Spec.Containers[0].Resources.Limits["akri.sh/cam-1"] = quantity("2")
	withGroup := podFacts(ofBoth, taken)
	withGroup.Requested = append(withGroup.Requested, served(nil))
	lost := pending("two", "akri.sh/cam-9", "0/1 nodes are available: 1 Insufficient akri.sh/cam-9.")
	unknown := &Facts{Pod: &lost, Unknown: []string{"akri.sh/cam-9"}}
	for name, c := range map[string]struct {
		facts *Facts
		want  []string
	}{
		"running":  {podFacts(pod("two", "node1", "akri.sh/cam-1"), nil), []string{"No problem found: Pod two is Running."}},
		"starting": {podFacts(waiting("two", "ContainerCreating", ""), nil), []string{"No problem found"}},
		"no slot": {
			podFacts(pending("two", "akri.sh/cam-1", "1 Insufficient akri.sh/cam-1."), taken),
			[]string{"Pod two waits for akri.sh/cam-1: all 2 slots are in use on node1 (Pod one). → delete a Pod"},
		},
		"neither a device nor any of the others": {
			withGroup,
			[]string{"Pod two waits for akri.sh/cam-1: all 2 slots",
				"Pod two waits for 2 devices of akri.sh/cam; devices with a free slot: 0 of 1 on node1, 1 of 2 on node2."},
		},
		"too few slots": {
			podFacts(ofTwo, nil),
			[]string{"Pod two waits for akri.sh/cam-1: it requests 2 slots, and 1 of 2 is free; the others are in use on node1 (Pod one). → "},
		},
		"an update": {
			podFacts(revision(pending("two", "akri.sh/cam-1", "1 Insufficient akri.sh/cam-1."), "b"), func(f *Facts) {
				taken(f)
				f.Pods[0] = revision(f.Pods[0], "a")
			}),
			[]string{"(Pod one).\nIt is meant to replace Pod one, which Deployment cam-1 stops only when the new Pod is ready. → " +
				`stop the old Pod first, with two lines in the spec of the Deployment, "strategy:" and ` +
				`"  rollingUpdate: {maxSurge: 0, maxUnavailable: 1}"; if Akri has`},
		},
		"an update that ends the old Pod": {
			podFacts(revision(pending("two", "akri.sh/cam-1", "1 Insufficient akri.sh/cam-1."), "b"), func(f *Facts) {
				taken(f)
				f.Pods[0] = revision(f.Pods[0], "a")
				f.Pods[0].DeletionTimestamp = &metav1.Time{Time: f.Now}
			}),
			[]string{"(Pod one). → delete a Pod"},
		},
		"another Deployment": {
			podFacts(revision(pending("two", "akri.sh/cam-1", "1 Insufficient akri.sh/cam-1."), "b"), func(f *Facts) {
				taken(f)
				f.Pods[0] = revision(f.Pods[0], "a")
				f.Pods[0].OwnerReferences[0].Name = "viewer-a"
			}),
			[]string{"(Pod one). → delete a Pod"},
		},
		"another replica": {
			podFacts(revision(pending("two", "akri.sh/cam-1", "1 Insufficient akri.sh/cam-1."), "a"), func(f *Facts) {
				taken(f)
				f.Pods[0] = revision(f.Pods[0], "a")
			}),
			[]string{"(Pod one). → delete a Pod"},
		},
		"device gone": {
			podFacts(pending("two", "akri.sh/cam-1", "1 Insufficient akri.sh/cam-1."), func(f *Facts) { f.Instance.Spec.Nodes = nil }),
			[]string{"No node sees the device.", "Pod two waits for akri.sh/cam-1: no node sees the device."},
		},
		"memory": {
			podFacts(pending("two", "akri.sh/cam-1", "1 Insufficient memory."), nil),
			[]string{"Pod two cannot be scheduled: 1 Insufficient memory."},
		},
		"rejected": {podFacts(failed, nil), []string{"Pod two has failed on node1: UnexpectedAdmissionError: slot taken → create it again"}},
		"unknown":  {unknown, []string{"akri.sh/cam-9 is requested, but there is no Instance or Configuration cam-9. → correct the name"}},
	} {
		t.Run(name, func(t *testing.T) { compare(t, c.facts, c.want) })
	}
}

func TestWhyPod(t *testing.T) {
	facts := podFacts(pending("two", "akri.sh/cam-1", "1 Insufficient akri.sh/cam-1."), func(f *Facts) {
		f.Instance.Spec.DeviceUsage["cam-1-1"] = "C:0:node1"
	})
	facts.Created = &Made{For: "Instance plant/cam-1, by Deployment.apps plant/cam-1"}
	facts.Events = []corev1.Event{{
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "two"}, Reason: "FailedScheduling", Message: "no room",
	}}
	facts.Events[0].LastTimestamp.Time = facts.Now.Add(-time.Minute)
	var out strings.Builder
	facts.Conclude()
	if err := facts.Text(&out); err != nil {
		t.Fatal(err)
	}
	const want = `Pod plant/two  on no node yet  Pending
  for        Instance plant/cam-1, by Deployment.apps plant/cam-1
  requests   1 of akri.sh/cam-1, Instance plant/cam-1: 0 of 2 slots free
  slot       cam-1-0  used on node1  by Pod one
  slot       cam-1-1  used on node1 through akri.sh/cam (id 0)

Latest events:
  60s ago  Pod two  FailedScheduling: no room

Conclusion:
  Pod two waits for akri.sh/cam-1: all 2 slots are in use on node1 (Pod one).
    → delete a Pod that uses the device, request fewer slots, or raise spec.capacity of the Configuration
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestPodNotes(t *testing.T) {
	device := func(name string, properties ...string) *Facts {
		return healthy(func(f *Facts) {
			f.Instance.Name, f.Instance.Spec.BrokerProperties = name, map[string]string{}
			for _, property := range properties {
				f.Instance.Spec.BrokerProperties[property] = "x"
			}
		})
	}
	container := func(name string, requested ...corev1.ResourceName) corev1.Container {
		limits := corev1.ResourceList{"memory": quantity("1Mi")}
		for _, name := range requested {
			limits[name] = quantity("1")
		}
		return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Limits: limits}}
	}
	cameras := served(nil)
	cameras.Instances[0].Spec.BrokerProperties = map[string]string{"URL": "x"}
	facts := &Facts{Pod: &corev1.Pod{}, Requested: []*Facts{
		device("cam-1", "URL", "NAME", "MODEL"), device("mic-2", "URL", "NAME", "RATE"), device("usb-3", "DEVNODE"), cameras,
	}}
	group := corev1.ResourceName(cameras.resourceFor(nil))
	sidecar := container("sidecar", "akri.sh/cam-1")
	sidecar.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	for name, c := range map[string]struct {
		inits, containers []corev1.Container
		want              string // parts of the notes, separated by |
	}{
		"one resource":   {nil, []corev1.Container{container("app", "akri.sh/cam-1"), container("web")}, ""},
		"no common name": {nil, []corev1.Container{container("app", "akri.sh/cam-1", "akri.sh/usb-3")}, ""},
		"two containers": {nil, []corev1.Container{container("app", "akri.sh/cam-1"), container("web", "akri.sh/mic-2")}, ""},
		"a sidecar":      {[]corev1.Container{sidecar, container("init")}, []corev1.Container{container("app", "akri.sh/cam-1")}, ""},
		"an unknown one": {nil, []corev1.Container{container("app", "akri.sh/cam-1", "akri.sh/x")}, ""},
		"an Instance's and a Configuration's": {nil, []corev1.Container{container("app", "akri.sh/usb-3", "akri.sh/mic-2", group)},
			"have the same properties (URL): the kubelet chooses whose value a variable of the container app has; let the program read URL_HASH"},
		"two Instances'": {nil, []corev1.Container{container("app", "akri.sh/cam-1", "akri.sh/mic-2")},
			"devices of akri.sh/cam-1 and akri.sh/mic-2 have the same properties (NAME, URL): the kubelet chooses"},
		"an init container": {[]corev1.Container{container("init", "akri.sh/cam-1")}, []corev1.Container{container("app", "akri.sh/cam-1")},
			"the init container init requests a device, which the Pod has until it terminates, and the Pod may be killed"},
	} {
		facts.Pod.Spec.InitContainers, facts.Pod.Spec.Containers = c.inits, c.containers
		if got := strings.Join(facts.notes(), "|"); !strings.Contains(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("%s: notes %q, want %q", name, got, c.want)
		}
	}
}

func TestWhyObject(t *testing.T) {
	const head = "Service plant/cam-svc  ready\n  for        Instance plant/cam-1\n  selects    "
	for want, made := range map[string]*Made{
		"no Pod: none has the labels a=b, c=d\n\nInstance plant/cam-1": {
			Object: "Service plant/cam-svc", State: "ready", For: "Instance plant/cam-1", Selector: map[string]string{"c": "d", "a": "b"},
		},
		"Pod one  on node1  Running\n\nInstance plant/cam-1": {
			Object: "Service plant/cam-svc", State: "ready", For: "Instance plant/cam-1", Selector: map[string]string{"a": "b"},
			Selected: []corev1.Pod{pod("one", "node1", "akri.sh/cam")},
		},
	} {
		var out strings.Builder
		facts := healthy(func(f *Facts) { f.Created = made })
		if err := facts.Text(&out); err != nil || !strings.HasPrefix(out.String(), head+want) {
			t.Errorf("%v, got\n%s\nwant\n%s", err, out.String(), head+want)
		}
	}
}
