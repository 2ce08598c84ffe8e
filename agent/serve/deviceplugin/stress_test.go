package deviceplugin_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"akri.sh/akri/agent/device"
	"akri.sh/akri/agent/serve/deviceplugin"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/fulltest"
	"akri.sh/akri/internal/kubelettest"
)

var stress = flag.Duration("stress", 5*time.Second, "how long devices flap while pods come and go")

// TestFlappingGroup runs the load that crashes a kubelet whose plugin removes ids, at both
// levels: the devices of a Configuration appear, vanish, go offline and change their
// capacity every millisecond, while Pods that request the Configuration or one of its
// Instances come, end, and are force-deleted, and the kubelet is slow. The stub fails the test if an id leaves the
// list while a call names it.
func TestFlappingGroup(t *testing.T) {
	fulltest.Only(t)
	const group = "akri.sh/cam"
	deviceplugin.UnlimitedLists(t)
	names := []string{"cam-f1a110", "cam-f1a111", "cam-f1a112"}
	w := newWorld(t)
	k := kubelettest.Start(t, kubelettest.Options{})
	a := w.agent("node-a", k)
	var devices []device.Device
	for _, name := range names {
		w.instance(name, "node-a")
		devices = append(devices, w.device(name, 2))
	}
	a.publish(devices...)
	k.Await(group, count(plugin.Healthy, len(names)))
	ctx, cancel := context.WithTimeout(t.Context(), *stress)
	defer cancel()
	var running sync.WaitGroup
	running.Go(func() { flap(ctx, a, devices) })
	running.Go(func() { // a busy machine delays the kubelet
		for ctx.Err() == nil {
			release := k.Stall()
			time.Sleep(rand.N(100 * time.Millisecond))
			release()
			time.Sleep(rand.N(100 * time.Millisecond))
		}
	})
	var admitted, refused int
	for n := 0; ctx.Err() == nil; n++ {
		resource, wanted := group, int64(1+rand.N(2))
		if rand.N(3) == 0 {
			resource, wanted = v0.ResourceName(names[rand.N(len(names))]), 1
		}
		pod := kubelettest.Pod(fmt.Sprint("p", n), resource, wanted)
		if err := k.Admit(pod); err != nil {
			refused++
			k.Remove(pod)
			time.Sleep(time.Millisecond)
			continue
		}
		admitted++
		running.Go(func() { end(ctx, k, pod) })
	}
	running.Wait()
	t.Logf("%d pods admitted, %d refused", admitted, refused)
	if admitted < 10 {
		t.Error("the test is void: hardly any pod was admitted")
	}
	a.publish(devices...)
	start := time.Now()
	for _, name := range names {
		for slot := range 2 {
			w.becomes(name, slot, "", 15*time.Second)
		}
	}
	t.Logf("all slots free %s after the last pod", time.Since(start))
}

// flap publishes devices that change every millisecond until ctx is done.
func flap(ctx context.Context, a *agent, devices []device.Device) {
	for ctx.Err() == nil {
		var present []device.Device
		for _, d := range devices {
			d.Capacity, d.Online = int32(1+rand.N(3)), rand.N(4) > 0
			if rand.N(4) > 0 {
				present = append(present, d)
			}
		}
		a.publish(present...)
		time.Sleep(time.Millisecond)
	}
}

// end ends a Pod soon, or when ctx is done; sometimes by force.
func end(ctx context.Context, k *kubelettest.Kubelet, pod *corev1.Pod) {
	pause := func(d time.Duration) {
		select {
		case <-ctx.Done():
		case <-time.After(d):
		}
	}
	pause(rand.N(20 * time.Millisecond))
	if rand.N(3) == 0 {
		k.ForceDelete(pod)
		pause(time.Second)
	}
	k.End(pod)
	k.Remove(pod)
}
