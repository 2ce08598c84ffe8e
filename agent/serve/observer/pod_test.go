package observer

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"akri.sh/akri/agent/core"
	"akri.sh/akri/agent/serve/kubelet"
	"akri.sh/akri/internal/metadata"
)

func deviceContainer(name, resourceName, count string) corev1.Container {
	list := corev1.ResourceList{"cpu": resource.MustParse("100m"), corev1.ResourceName(resourceName): resource.MustParse(count)}
	return corev1.Container{Name: name, Image: "x", Resources: corev1.ResourceRequirements{Limits: list, Requests: list}}
}

// TestReadPod checks what is read of Pods, and that nothing else of them is kept.
func TestReadPod(t *testing.T) {
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
			podInfo{Requests: map[string]int{"cam": 3}},
		},
		"init container after a sidecar": {
			"the sidecar keeps its id, so the init container got three others, and only two went to the container",
			corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{
				Containers: app, InitContainers: []corev1.Container{sidecar, deviceContainer("init", "akri.sh/cam", "3")},
			}},
			podInfo{Requests: map[string]int{"cam": 3}, Hidden: map[string]bool{"cam": true}},
		},
		"init container before a sidecar": {
			"the sidecar and the container got the three ids of the init container",
			corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{
				Containers: app, InitContainers: []corev1.Container{deviceContainer("init", "akri.sh/cam", "3"), sidecar},
			}},
			podInfo{Requests: map[string]int{"cam": 3}},
		},
		"init containers around a sidecar": {
			"the second init container got one id again and one more, which went to the container",
			corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{
				Containers: app, InitContainers: []corev1.Container{
					deviceContainer("first", "akri.sh/cam", "2"), sidecar, deviceContainer("second", "akri.sh/cam", "2"),
				},
			}},
			podInfo{Requests: map[string]int{"cam": 3}},
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
			podInfo{Requests: map[string]int{"cam": 1}},
		},
		"init container with more": {
			"the list does not show what only a plain init container has",
			corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{
				Containers: app, InitContainers: []corev1.Container{deviceContainer("init", "akri.sh/cam", "3")},
			}},
			podInfo{Requests: map[string]int{"cam": 2}, Hidden: map[string]bool{"cam": true}},
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
			podInfo{Requests: map[string]int{"cam": 2}},
		},
		"waiting": {
			"the kubelet has not reported its admission",
			corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{Containers: app}, Status: corev1.PodStatus{Phase: corev1.PodPending}},
			podInfo{Requests: map[string]int{"cam": 2}, Waiting: true},
		},
		"succeeded": {
			"a final phase",
			corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{Containers: app},
				Status: corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: state(isTerminated)}},
			podInfo{Requests: map[string]int{"cam": 2}, Terminated: true},
		},
		"failed while a container runs": {
			"an evicted pod has this phase before its containers have terminated",
			corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{Containers: app},
				Status: corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: state(isRunning)}},
			podInfo{Requests: map[string]int{"cam": 2}},
		},
		"refused at admission": {
			"nothing was started",
			corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{Containers: app}, Status: corev1.PodStatus{Phase: corev1.PodFailed}},
			podInfo{Requests: map[string]int{"cam": 2}, Terminated: true},
		},
		"being deleted": {
			"its container still runs",
			corev1.Pod{ObjectMeta: deleting, Spec: corev1.PodSpec{Containers: app},
				Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: state(isRunning)}},
			podInfo{Requests: map[string]int{"cam": 2}},
		},
		"being deleted, stopped": {
			"no container restarts",
			corev1.Pod{ObjectMeta: deleting, Spec: corev1.PodSpec{Containers: app},
				Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: state(isTerminated)}},
			podInfo{Requests: map[string]int{"cam": 2}, Terminated: true},
		},
		"being deleted, ephemeral container": {
			"an ephemeral container can reach the devices of the pod",
			corev1.Pod{ObjectMeta: deleting, Spec: corev1.PodSpec{Containers: app},
				Status: corev1.PodStatus{ContainerStatuses: state(isTerminated), EphemeralContainerStatuses: state(isRunning)}},
			podInfo{Requests: map[string]int{"cam": 2}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := tc.want
			want.ObjectMeta = metadata.Identity(&tc.pod)
			if !want.Waiting {
				tc.pod.Status.StartTime = &now
			}
			if diff := cmp.Diff(want, *readPod(&tc.pod).(*podInfo)); diff != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, diff)
			}
		})
	}
}

// watched returns the Pods of a node, without an API server.
func watched(t *testing.T) *nodePods {
	t.Helper()
	client, err := core.NewClient(&rest.Config{Host: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	return newNodePods(client, "node", func(context.Context, error) {})
}

// TestVanished checks that a Pod that is deleted before it terminated is kept for as long
// as its container may run: after the kubelet has stopped to list it, which may be much
// later if the kubelet does not reach the API server.
func TestVanished(t *testing.T) {
	wants := map[string]int{"cam": 1}
	pod := podInfo{ObjectMeta: called("old", "p"), Requests: wants, Waiting: true} // the report of its admission may be late
	ended := podInfo{ObjectMeta: called("ended", "q"), Requests: wants, Terminated: true}
	next := podInfo{ObjectMeta: called("new", "p"), Requests: wants}
	once, twice := kubelet.Listing{{Namespace: "default", Name: "p"}}, make(kubelet.Listing, 2)
	twice[0], twice[1] = once[0], once[0]
	for name, tc := range map[string]struct {
		lists   []kubelet.Listing // one each second
		then    []podInfo         // are created after the deletion
		counted string            // which lists count the deleted Pod
	}{
		"not listed any more":           {make([]kubelet.Listing, 7), nil, "yyyyynn"},
		"listed for two seconds":        {append([]kubelet.Listing{once, once, once}, make([]kubelet.Listing, 7)...), nil, "yyyyyyyynn"},
		"only its successor is listed":  {[]kubelet.Listing{once, once, once, once, once, once, once}, []podInfo{next}, "yyyyynn"},
		"it and its successor":          {[]kubelet.Listing{twice, twice, once, once, once, once, once, once}, []podInfo{next}, "yyyyyyyn"},
		"listed again, after a restart": {[]kubelet.Listing{nil, nil, nil, once, nil, nil, nil, nil, nil, nil}, nil, "yyyyyyyyyn"},
	} {
		pods := watched(t)
		pods.put(pod)
		pods.put(ended)
		pods.remove(pod)
		pods.remove(ended)
		for _, p := range tc.then {
			pods.put(p)
		}
		got, now := "", time.Now()
		for i, listing := range tc.lists {
			seen := "n"
			for _, p := range pods.at(listing, now.Add(time.Duration(i)*time.Second)) {
				if p.UID == pod.UID && !p.Waiting {
					seen = "y"
				}
				if p.UID == ended.UID {
					t.Errorf("%s: the Pod that had terminated is counted", name)
				}
			}
			got += seen
		}
		if got != tc.counted {
			t.Errorf("%s: counted %s, want %s", name, got, tc.counted)
		}
		if strings.HasSuffix(got, "n") && len(pods.vanished) > 0 {
			t.Errorf("%s: the Pod takes memory after the hold", name)
		}
	}
}

// TestSignals checks that only changes that can end a use are signaled.
func TestSignals(t *testing.T) {
	pods := watched(t)
	pod := podInfo{ObjectMeta: called("u", "p"), Requests: map[string]int{"cam": 1}}
	ended := pod
	ended.Terminated = true
	other := podInfo{ObjectMeta: called("other", "other")}
	for _, step := range []struct {
		name string
		do   func()
		want bool
	}{
		{"created", func() { pods.put(pod) }, true},
		{"another status", func() { pods.put(pod) }, false},
		{"a pod without devices", func() { pods.put(other) }, false},
		{"ended", func() { pods.put(ended) }, true},
		{"deleted", func() { pods.remove(ended) }, true},
		{"the pod without devices deleted", func() { pods.remove(other) }, false},
	} {
		step.do()
		select {
		case <-pods.changed:
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
