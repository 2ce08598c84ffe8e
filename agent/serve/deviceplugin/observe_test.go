package deviceplugin_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"akri.sh/akri/internal/fulltest"
	"akri.sh/akri/internal/kubelettest"
)

// TestReleaseLatency measures how long a slot stays taken after its Pod has terminated.
func TestReleaseLatency(t *testing.T) {
	fulltest.Only(t)
	const (
		rounds, capacity = 3, 5
		maxMedian        = 200 * time.Millisecond
		maxLatency       = 2 * time.Second
	)
	w := newWorld(t)
	w.instance("cam-1a7e9c", "node-a")
	k := kubelettest.Start(t, kubelettest.Options{})
	w.agent("node-a", k).publish(w.device("cam-1a7e9c", capacity))
	k.Await("akri.sh/cam-1a7e9c", count(plugin.Healthy, capacity))
	var took []time.Duration
	for range rounds {
		var pods []*corev1.Pod
		for i := range capacity {
			pods = append(pods, admit(t, k, fmt.Sprint("p", i), "cam-1a7e9c"))
		}
		aged()
		for _, pod := range pods {
			slot := int(k.IDs(pod, "app", "akri.sh/cam-1a7e9c")[0][len("cam-1a7e9c-")] - '0')
			k.End(pod)
			took = append(took, w.becomes("cam-1a7e9c", slot, "", 12*time.Second))
			k.Remove(pod)
		}
	}
	slices.Sort(took)
	t.Logf("pod end to free slot: p50 %s, max %s", took[len(took)/2], took[len(took)-1])
	if median := took[len(took)/2]; median > maxMedian {
		t.Errorf("p50 %s, more than %s", median, maxMedian)
	}
	if slowest := took[len(took)-1]; slowest > maxLatency {
		t.Errorf("max %s, more than %s", slowest, maxLatency)
	}
}

// TestRefusedListIsRepeated checks that a slot is free soon although the kubelet refuses some
// lists, as it does if its clients together list too often.
func TestRefusedListIsRepeated(t *testing.T) {
	w := newWorld(t)
	w.instance("cam-4ef05e", "node-a")
	k := kubelettest.Start(t, kubelettest.Options{})
	w.agent("node-a", k).publish(w.device("cam-4ef05e", 1))
	k.Await("akri.sh/cam-4ef05e", count(plugin.Healthy, 1))
	pod := admit(t, k, "p", "cam-4ef05e")
	aged()
	var refused atomic.Int32
	k.BreakList(func(context.Context) error {
		if refused.Add(1) == 4 {
			k.BreakList(nil)
		}
		return status.Error(codes.ResourceExhausted, "rejected by rate limit")
	})
	k.End(pod)
	w.becomes("cam-4ef05e", 0, "", 7*time.Second)
}

// TestStalledKubelet checks that a slot stays taken while the kubelet is stalled between
// the response to the Allocate and the entry in its list.
func TestStalledKubelet(t *testing.T) {
	fulltest.Only(t)
	w := newWorld(t)
	w.instance("cam-57a11e", "node-a")
	k := kubelettest.Start(t, kubelettest.Options{})
	w.agent("node-a", k).publish(w.device("cam-57a11e", 1))
	k.Await("akri.sh/cam-57a11e", count(plugin.Healthy, 1))
	release := k.Stall()
	pod, admitted := kubelettest.Pod("p", "akri.sh/cam-57a11e", 1), make(chan error, 1)
	go func() { admitted <- k.Admit(pod) }()
	w.becomes("cam-57a11e", 0, "node-a", 5*time.Second)
	w.stays("cam-57a11e", 0, "node-a", 15*time.Second)
	release()
	if err := <-admitted; err != nil {
		t.Fatal(err)
	}
	w.stays("cam-57a11e", 0, "node-a", time.Second)
	k.End(pod)
	w.becomes("cam-57a11e", 0, "", 12*time.Second)
}

// TestInitContainerAfterSidecar checks that a slot that only a plain init container has is
// held until the Pod ends, although a sidecar has a slot, too.
func TestInitContainerAfterSidecar(t *testing.T) {
	fulltest.Only(t)
	w := newWorld(t)
	w.instance("cam-51deca", "node-a")
	k := kubelettest.Start(t, kubelettest.Options{})
	w.agent("node-a", k).publish(w.device("cam-51deca", 3))
	k.Await("akri.sh/cam-51deca", count(plugin.Healthy, 3))
	always := corev1.ContainerRestartPolicyAlways
	sidecar := kubelettest.Container("sidecar", "akri.sh/cam-51deca", 1)
	sidecar.RestartPolicy = &always
	pod := kubelettest.Pod("p", "akri.sh/cam-51deca", 1)
	pod.Spec.InitContainers = []corev1.Container{sidecar, kubelettest.Container("init", "akri.sh/cam-51deca", 2)}
	if err := k.Admit(pod); err != nil {
		t.Fatal(err)
	}
	aged()
	for slot := range 3 {
		w.stays("cam-51deca", slot, "node-a", time.Second)
	}
	k.End(pod)
	for slot := range 3 {
		w.becomes("cam-51deca", slot, "", 12*time.Second)
	}
}

// TestForceDeletionOverlap checks that a slot that the kubelet gives to a new Pod while the
// container of a force-deleted Pod still runs is held until both have ended.
func TestForceDeletionOverlap(t *testing.T) {
	fulltest.Only(t)
	w := newWorld(t)
	w.instance("cam-0ve41a", "node-a")
	k := kubelettest.Start(t, kubelettest.Options{})
	w.agent("node-a", k).publish(w.device("cam-0ve41a", 1))
	k.Await("akri.sh/cam-0ve41a", count(plugin.Healthy, 1))
	old := admit(t, k, "p", "cam-0ve41a")
	aged()
	k.ForceDelete(old)
	successor := admit(t, k, "p", "cam-0ve41a")
	w.stays("cam-0ve41a", 0, "node-a", 2500*time.Millisecond)
	k.End(old)
	k.Remove(old)
	w.stays("cam-0ve41a", 0, "node-a", 3*time.Second)
	k.End(successor)
	w.becomes("cam-0ve41a", 0, "", 12*time.Second)
}

// TestAllocatedTwice checks that an Event names the Pods that have the same ID.
func TestAllocatedTwice(t *testing.T) {
	for name, tc := range map[string]struct{ kind, object, resource, id string }{
		"Instance":      {"Instance", "cam-2a11c7", "akri.sh/cam-2a11c7", "cam-2a11c7-0"},
		"Configuration": {"Configuration", "cam", group, "0"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			k := kubelettest.Start(t, kubelettest.Options{})
			w.offer(k, 1, "cam-2a11c7")
			first := admitPod(t, k, kubelettest.Pod("p", tc.resource, 1))
			owner, second := w.owners("cam-2a11c7")[0], kubelettest.Pod("q", tc.resource, 1)
			k.Duplicate(second, first)
			want := "the kubelet of node node-a gave " + tc.resource + " (" + tc.id + ") to more than one container, " +
				"of default/p and default/q; delete one of the Pods"
			if got := w.event(tc.kind, tc.object, "AllocatedTwice"); got != want {
				t.Errorf("the Event says\n%s\nwant\n%s", got, want)
			}
			// The slot is free only when both have ended.
			k.End(first)
			w.stays("cam-2a11c7", 0, owner, 2*time.Second)
			k.End(second)
			w.becomes("cam-2a11c7", 0, "", 12*time.Second)
		})
	}
}

// TestHeldByInitContainer checks that an Event names a Pod if only an init container of it
// got a slot.
func TestHeldByInitContainer(t *testing.T) {
	for name, tc := range map[string]struct{ kind, object, resource string }{
		"Instance":      {"Instance", "cam-1417c0", "akri.sh/cam-1417c0"},
		"Configuration": {"Configuration", "cam", group},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			k := kubelettest.Start(t, kubelettest.Options{})
			w.offer(k, 2, "cam-1417c0")
			pod := kubelettest.Pod("p", tc.resource, 1)
			pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
			pod.Spec.InitContainers = []corev1.Container{kubelettest.Container("init", tc.resource, 1)}
			admitPod(t, k, pod)
			want := "an init container of Pod default/p got " + tc.resource + ": the Pod has it until it ends, and the kubelet of node node-a " +
				"may kill the Pod when it restarts; request the device in the containers only, or use a sidecar with restartPolicy: Always"
			if got := w.event(tc.kind, tc.object, "HeldByInitContainer"); got != want {
				t.Errorf("the Event says\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// TestNoListDuringAllocate checks that the end of a Pod does not lead to a list of the
// kubelet while that waits for the response to an Allocate. On a busy machine an Allocate
// can take longer than a list waits, so one of several must have no list.
func TestNoListDuringAllocate(t *testing.T) {
	w := newWorld(t)
	w.instance("cam-0a11c8", "node-a")
	k := kubelettest.Start(t, kubelettest.Options{})
	a := w.agent("node-a", k)
	a.publish(w.device("cam-0a11c8", 2))
	k.Await("akri.sh/cam-0a11c8", count(plugin.Healthy, 2))
	a.patchTime.Store(int64(150 * time.Millisecond))
	before := admit(t, k, "p", "cam-0a11c8")
	for attempt := 1; ; attempt++ {
		aged()
		calls, overlaps, next := len(k.Calls()), k.Overlaps(), kubelettest.Pod(fmt.Sprint("p", attempt), "akri.sh/cam-0a11c8", 1)
		admitted := make(chan error, 1)
		go func() { admitted <- k.Admit(next) }()
		for !slices.ContainsFunc(k.Calls()[calls:], func(call string) bool { return strings.HasPrefix(call, "Allocate ") }) {
			time.Sleep(time.Millisecond)
		}
		k.End(before)
		if err := <-admitted; err != nil {
			t.Fatal(err)
		}
		slot := int(k.IDs(before, "app", "akri.sh/cam-0a11c8")[0][len("cam-0a11c8-")] - '0')
		w.becomes("cam-0a11c8", slot, "", 12*time.Second) // the end was noticed
		if k.Overlaps() == overlaps {
			return
		}
		if attempt == 5 {
			t.Fatal("there was a list during each Allocate")
		}
		before = next
	}
}
