package onvif

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"akri.sh/akri/discovery/onvif/wsdiscovery"
)

// TestManyAddresses probes addresses for longer than answers are waited for, and for longer
// than the interval. A camera must not miss a probe that has not been sent to it yet.
func TestManyAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &lossyNetwork{messages: make(chan message), cameras: []int{1, 2, 3, 4}, loses: never, sending: 8 * time.Second}
		tr := &trial{network: network}
		var checks atomic.Int64
		tr.perform = func(r request) outcome {
			if r.check {
				checks.Add(1)
			}
			time.Sleep(4 * time.Second) // a slow camera
			return always(r)
		}
		tr.run(t, "{discoveryTimeoutSeconds: 1, intervalSeconds: 2, misses: 1}", func(context.Context) { time.Sleep(time.Hour) })
		if len(tr.lists) != 1 || len(tr.lists[0]) != 4 || checks.Load() > 0 {
			t.Errorf("%d lists at %v, and %d checks; want one list with all cameras, and no check", len(tr.lists), tr.sentAt, checks.Load())
		}
		if probes := network.probes.Load(); probes < 390 {
			t.Errorf("%d probes in an hour, want one in 9 s", probes)
		}
	})
}

// TestHelloWhileAddressesAreProbed checks that a camera which must be asked by multicast
// does not wait for that.
func TestHelloWhileAddressesAreProbed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := &trial{network: &lossyNetwork{messages: make(chan message), loses: never, sending: time.Hour}, perform: always}
		var before int64
		tr.run(t, "", func(ctx context.Context) {
			time.Sleep(time.Minute)
			from, announcement := cameraNumber(wsdiscovery.Hello, 1)
			announcement.XAddrs = nil
			before = tr.network.probes.Load()
			tr.network.messages <- message{from: from, Announcement: announcement}
			time.Sleep(minProbePause)
		})
		if tr.network.probes.Load() == before {
			t.Error("no probe within a second")
		}
	})
}
