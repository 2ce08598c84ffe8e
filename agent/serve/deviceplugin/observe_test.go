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

	"akri.sh/akri/internal/kubelettest"
)

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
			want := "an init container of Pod default/p got " + tc.resource + ": the Pod keeps it until it terminates, and a restart of the " +
				"kubelet of node node-a may kill the Pod; request the device only in containers, or in a sidecar with restartPolicy: Always"
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
