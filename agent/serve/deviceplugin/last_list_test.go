package deviceplugin

import (
	"log/slog"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"akri.sh/akri/agent/device"
	"akri.sh/akri/agent/serve/slots"
	"akri.sh/akri/internal/kubelettest"
)

// TestLastList checks that streams end with the list in which every ID is unhealthy, also
// if the agent stops just when another list has been sent. Otherwise the kubelet would show
// healthy devices although there is no agent.
func TestLastList(t *testing.T) {
	const attempts, streams = 30, 4
	for range attempts {
		s := newService(slots.Resource{Name: "cam-1a2b3c"}, &stubAllocator{})
		s.setList([]slots.Health{{ID: 0, Healthy: true}})
		var running, sending sync.WaitGroup
		sending.Add(streams)
		last := make([]string, streams)
		for i := range streams {
			started := sync.OnceFunc(sending.Done)
			running.Go(func() {
				for ended := false; !ended; started() { // as ListAndWatch does, without its pauses
					version, list := s.take()
					ended = s.markSent(version)
					last[i] = list.GetDevices()[0].GetHealth()
				}
			})
		}
		sending.Wait()
		s.sendUnhealthy()
		running.Wait()
		for _, health := range last {
			if health != plugin.Unhealthy {
				t.Fatalf("the last lists of the streams: %v", last)
			}
		}
	}
}

// TestStopIsNoFailure checks that the end of the streams is not taken for the kubelet's
// doing when the agent stops: nothing is tried again, and nobody is warned.
func TestStopIsNoFailure(t *testing.T) {
	for range 10 {
		k, log := kubelettest.Start(t, kubelettest.Options{}), &records{}
		s, stop := unconnected(t, k, slog.New(slog.NewTextHandler(log, nil)))
		s.Publish(types.NamespacedName{Namespace: "default", Name: "cam"}, []device.Device{{
			Instance: types.NamespacedName{Namespace: "default", Name: "cam-1a2b3c"}, Configuration: "cam", Capacity: 1, Online: true,
		}})
		k.Await(camResource, healthy(1))
		stop()
		if strings.Contains(log.text(), "does not use this socket") {
			t.Fatal(log.text())
		}
	}
}
