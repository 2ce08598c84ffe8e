package observer

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"akri.sh/akri/agent/serve/kubelet"
)

func deviceContainer(name, resourceName, count string) corev1.Container {
	list := corev1.ResourceList{"cpu": resource.MustParse("100m"), corev1.ResourceName(resourceName): resource.MustParse(count)}
	return corev1.Container{Name: name, Image: "x", Resources: corev1.ResourceRequirements{Limits: list, Requests: list}}
}

// TestPodForms checks that decoding the kubelet's bytes and reading the API server's
// object give the same result. The types of core/v1 encode the bytes.
func TestPodForms(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	sidecar := deviceContainer("sidecar", "akri.sh/cam", "1")
	sidecar.RestartPolicy = &always
	now := metav1.Now()
	state := func(s corev1.ContainerState) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{Name: "app", Ready: true, State: s}}
	}
	isRunning := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
	isTerminated := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}
	meta := metav1.ObjectMeta{UID: "u", Namespace: "n", Name: "p", Labels: map[string]string{"a": "b"}, CreationTimestamp: now}
	deleting := meta
	deleting.DeletionTimestamp = &now
	app := []corev1.Container{deviceContainer("app", "akri.sh/cam", "2")}
	for name, tc := range map[string]struct {
		reason string
		pod    corev1.Pod
		want   podInfo
	}{
		"running": {
			"containers and sidecars count",
			corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{
				Containers: app, InitContainers: []corev1.Container{sidecar, deviceContainer("init", "akri.sh/cam", "2")},
			},
				Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: state(isRunning)}},
			podInfo{Requests: map[string]int{"akri.sh/cam": 3}},
		},
		"init container after a sidecar": {
			"the sidecar keeps its id, so the init container got three others, and only two went to the container",
			corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{
				Containers: app, InitContainers: []corev1.Container{sidecar, deviceContainer("init", "akri.sh/cam", "3")},
			}},
			podInfo{Requests: map[string]int{"akri.sh/cam": 3}, Hidden: map[string]bool{"akri.sh/cam": true}},
		},
		"init container before a sidecar": {
			"the sidecar and the container got the three ids of the init container",
			corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{
				Containers: app, InitContainers: []corev1.Container{deviceContainer("init", "akri.sh/cam", "3"), sidecar},
			}},
			podInfo{Requests: map[string]int{"akri.sh/cam": 3}},
		},
		"init containers around a sidecar": {
			"the second init container got one id again and one more, which went to the container",
			corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{
				Containers: app, InitContainers: []corev1.Container{
					deviceContainer("first", "akri.sh/cam", "2"), sidecar, deviceContainer("second", "akri.sh/cam", "2"),
				},
			}},
			podInfo{Requests: map[string]int{"akri.sh/cam": 3}},
		},
		"served by DRA": {
			"the device plugin is not involved in the requests of the claim",
			corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{
				Containers: app, InitContainers: []corev1.Container{sidecar, deviceContainer("init", "akri.sh/cam", "9")},
			},
				Status: corev1.PodStatus{Phase: corev1.PodRunning, ExtendedResourceClaimStatus: &corev1.PodExtendedResourceClaimStatus{
					ResourceClaimName: "p-extended-resources-x", RequestMappings: []corev1.ContainerExtendedResourceRequest{
						{ContainerName: "app", ResourceName: "akri.sh/cam", RequestName: "r0"},
						{ContainerName: "init", ResourceName: "akri.sh/cam", RequestName: "r1"},
					},
				}}},
			podInfo{Requests: map[string]int{"akri.sh/cam": 1}},
		},
		"init container with more": {
			"the list does not show what only a plain init container has",
			corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{
				Containers: app, InitContainers: []corev1.Container{deviceContainer("init", "akri.sh/cam", "3")},
			}},
			podInfo{Requests: map[string]int{"akri.sh/cam": 2}, Hidden: map[string]bool{"akri.sh/cam": true}},
		},
		"other resources": {
			"only Akri's resources count",
			corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{Containers: []corev1.Container{deviceContainer("app", "example.com/gpu", "1")}}},
			podInfo{},
		},
		"crash-looping": {
			"its container has terminated and will restart",
			corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{Containers: app},
				Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: state(isTerminated)}},
			podInfo{Requests: map[string]int{"akri.sh/cam": 2}},
		},
		"succeeded": {
			"a final phase",
			corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{Containers: app},
				Status: corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: state(isTerminated)}},
			podInfo{Requests: map[string]int{"akri.sh/cam": 2}, Terminated: true},
		},
		"failed while a container runs": {
			"an evicted pod has this phase before its containers have terminated",
			corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{Containers: app},
				Status: corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: state(isRunning)}},
			podInfo{Requests: map[string]int{"akri.sh/cam": 2}},
		},
		"refused at admission": {
			"nothing was started",
			corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{Containers: app}, Status: corev1.PodStatus{Phase: corev1.PodFailed}},
			podInfo{Requests: map[string]int{"akri.sh/cam": 2}, Terminated: true},
		},
		"being deleted": {
			"its container still runs",
			corev1.Pod{ObjectMeta: deleting, Spec: corev1.PodSpec{Containers: app},
				Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: state(isRunning)}},
			podInfo{Requests: map[string]int{"akri.sh/cam": 2}},
		},
		"being deleted, stopped": {
			"no container restarts",
			corev1.Pod{ObjectMeta: deleting, Spec: corev1.PodSpec{Containers: app},
				Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: state(isTerminated)}},
			podInfo{Requests: map[string]int{"akri.sh/cam": 2}, Terminated: true},
		},
		"being deleted, ephemeral container": {
			"an ephemeral container can reach the devices of the pod",
			corev1.Pod{ObjectMeta: deleting, Spec: corev1.PodSpec{Containers: app},
				Status: corev1.PodStatus{ContainerStatuses: state(isTerminated), EphemeralContainerStatuses: state(isRunning)}},
			podInfo{Requests: map[string]int{"akri.sh/cam": 2}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := tc.want
			want.UID, want.Namespace, want.Name = "u", "n", "p"
			tc.pod.Status.StartTime = &now
			message, err := tc.pod.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			fromBytes, err := decodePod(message)
			if err != nil {
				t.Fatal(err)
			}
			for form, got := range map[string]podInfo{"bytes": fromBytes, "JSON": fromJSON(t, &tc.pod)} {
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (%s): -want +got\n%s", tc.reason, form, diff)
				}
			}
		})
	}
}

// fromJSON returns what the observer reads of a Pod in the API server.
func fromJSON(t *testing.T, pod *corev1.Pod) podInfo {
	t.Helper()
	text, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	var decoded apiPod
	if err := json.Unmarshal(text, &decoded); err != nil {
		t.Fatal(err)
	}
	return decoded.read()
}

// TestWaitingPod checks that a Pod waits for its admission until the kubelet has reported
// its start, and that one that vanishes before counts as admitted: the report may be late.
func TestWaitingPod(t *testing.T) {
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: "u", Namespace: "n", Name: "p"},
		Spec:       corev1.PodSpec{NodeName: "node", Containers: []corev1.Container{deviceContainer("app", "akri.sh/cam", "1")}},
		Status:     corev1.PodStatus{Phase: corev1.PodPending},
	}
	read := func() podInfo { return fromJSON(t, &pod) }
	lingering := func(pods ...podInfo) []string {
		o := account([]kubelet.Listing{{}}, pods)
		if !slices.Equal(o.Open, []string{"cam"}) {
			t.Errorf("open is %q, want cam", o.Open)
		}
		return o.Lingering
	}
	if got := lingering(read()); len(got) > 0 {
		t.Errorf("a pod that waits for its admission: lingering is %q, want none", got)
	}
	pods := newStore(make(chan struct{}, 1))
	pods.put(read())
	pods.remove("u", false)
	vanished, _ := pods.snapshot()
	if got := lingering(vanished...); !slices.Equal(got, []string{"cam"}) {
		t.Errorf("a pod that vanished: lingering is %q, want cam", got)
	}
	now := metav1.Now()
	pod.Status.StartTime = &now
	if got := lingering(read()); !slices.Equal(got, []string{"cam"}) {
		t.Errorf("an admitted pod: lingering is %q, want cam", got)
	}
}

func FuzzDecodePod(f *testing.F) {
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: "u"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{deviceContainer("app", "akri.sh/cam", "1")}},
	}
	message, err := pod.Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(message)
	f.Fuzz(func(t *testing.T, message []byte) {
		if pod, err := decodePod(message); err == nil && pod.UID == "" {
			t.Error("a pod without a UID was accepted")
		}
	})
}

// TestVanished checks that a Pod that is deleted before it terminated is kept for as
// long as its container may run.
func TestVanished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(make(chan struct{}, 1))
		wants := map[string]int{"akri.sh/cam": 1}
		count := func() int {
			pods, _ := s.snapshot()
			wanting := 0
			for _, pod := range pods {
				if pod.wantsDevices() {
					wanting++
				}
			}
			return wanting
		}
		s.replace(
			[]podInfo{
				{UID: "forced", Requests: wants},
				{UID: "ended", Requests: wants, Terminated: true},
				{UID: "deleted", Requests: wants},
				{UID: "plain"},
			},
		)
		if got := count(); got != 3 {
			t.Fatalf("%d pods, want those that request a device", got)
		}
		s.remove("deleted", true)
		s.replace(nil)
		if got := count(); got != 1 {
			t.Errorf("%d pods, want the one that vanished", got)
		}
		time.Sleep(vanishHold - time.Millisecond)
		if got := count(); got != 1 {
			t.Errorf("%d pods, want the one that vanished", got)
		}
		time.Sleep(time.Millisecond)
		if got := count(); got != 0 {
			t.Errorf("%d pods after the hold", got)
		}
	})
}

// TestVanishedAreForgotten checks that Pods that vanish take no memory after the hold,
// although nobody looks at them: a node without a slot in use makes no snapshots.
func TestVanishedAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(make(chan struct{}, 1))
		for i := range 100 {
			uid := fmt.Sprint(i)
			s.put(podInfo{UID: uid, Requests: map[string]int{"akri.sh/cam": 1}})
			s.remove(uid, false)
			if len(s.vanished) > 2 {
				t.Fatalf("%d Pods are kept", len(s.vanished))
			}
			time.Sleep(vanishHold / 2)
		}
	})
}

// TestSignals checks that only changes that can end a use are signaled: a list that shows
// the same Pods again must not cause the next one.
func TestSignals(t *testing.T) {
	changed := make(chan struct{}, 1)
	s := newStore(changed)
	pod := podInfo{UID: "u", Requests: map[string]int{"akri.sh/cam": 1}}
	ended := pod
	ended.Terminated = true
	for _, step := range []struct {
		name string
		do   func()
		want bool
	}{
		{"created", func() { s.replace([]podInfo{pod}) }, true},
		{"listed again", func() { s.replace([]podInfo{pod}) }, false},
		{"another status", func() { s.put(pod) }, false},
		{"a pod without devices", func() { s.put(podInfo{UID: "other"}) }, false},
		{"ended", func() { s.put(ended) }, true},
		{"deleted", func() { s.remove("u", true) }, true},
		{"deleted again", func() { s.remove("u", true) }, false},
	} {
		step.do()
		select {
		case <-changed:
			if !step.want {
				t.Errorf("%s: signaled", step.name)
			}
		default:
			if step.want {
				t.Errorf("%s: not signaled", step.name)
			}
		}
	}
}

// TestListsOfThePast checks that a list changes nothing about Pods that events are about
// while it is read: the list may be older. A Pod that came back would never leave again.
func TestListsOfThePast(t *testing.T) {
	s := newStore(make(chan struct{}, 1))
	s.replace([]podInfo{{UID: "deleted"}, {UID: "ended"}, {UID: "missed"}})
	err := s.replaceBy(func() ([]podInfo, error) {
		s.remove("deleted", true)
		s.put(podInfo{UID: "ended", Terminated: true})
		s.put(podInfo{UID: "created"})
		return []podInfo{{UID: "deleted"}, {UID: "ended"}, {UID: "listed"}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]podInfo{"ended": {UID: "ended", Terminated: true}, "created": {UID: "created"}, "listed": {UID: "listed"}}
	if !reflect.DeepEqual(s.pods, want) {
		t.Errorf("the pods are %+v, want %+v", s.pods, want)
	}

	// A list that fails changes nothing, and the next one counts again.
	failure := errors.New("refused")
	if err := s.replaceBy(func() ([]podInfo, error) { return nil, failure }); !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
	if err := s.replaceBy(func() ([]podInfo, error) { return []podInfo{{UID: "ended"}}, nil }); err != nil {
		t.Fatal(err)
	}
	if want := map[string]podInfo{"ended": {UID: "ended"}}; !reflect.DeepEqual(s.pods, want) {
		t.Errorf("the pods are %+v, want %+v", s.pods, want)
	}
}
