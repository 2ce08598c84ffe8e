package onvif

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"akri.sh/akri/discovery/onvif/wsdiscovery"
)

const (
	newCamera = 1
	// firstSilent is the number of the first camera that never ends a request by itself.
	firstSilent = 100
)

// isCamera reports whether a request is for a camera of cameraNumber.
func isCamera(r request, n int) bool {
	_, a := cameraNumber(wsdiscovery.Match, n)
	return r.url == a.XAddrs[0]
}

// TestHelloAmongSilentDevices measures the time from Hello to a list, of a camera whose web
// server comes up a second later, while requests to other cameras get no answer.
func TestHelloAmongSilentDevices(t *testing.T) {
	for name, tc := range map[string]struct {
		silent int
		since  time.Duration // since they have announced themselves
	}{
		"32 at the same time":   {32, 0},
		"100 at the same time":  {100, 0},
		"32 for some time":      {32, time.Minute},
		"1000 for some time":    {1000, 3 * time.Minute},
		"32 for a short time":   {32, 6 * time.Second},
		"100, at the next try":  {100, 5*time.Second + minRetryDelay},
		"1000, at the next try": {1000, 100 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr := &trial{network: &lossyNetwork{messages: make(chan message), loses: never}}
				var hello time.Time
				tr.perform = func(r request) outcome {
					if isCamera(r, newCamera) {
						return outcome{request: r, alive: time.Since(hello) >= time.Second, uuid: r.uuid}
					}
					time.Sleep(5 * time.Second)
					return outcome{request: r}
				}
				tr.run(t, "", func(ctx context.Context) {
					time.Sleep(20 * time.Second)
					for n := range tc.silent {
						tr.network.mu.Lock()
						tr.network.cameras = append(tr.network.cameras, firstSilent+n)
						tr.network.mu.Unlock()
						tr.network.announce(ctx, wsdiscovery.Hello, firstSilent+n)
					}
					time.Sleep(tc.since)
					hello = time.Now()
					tr.network.announce(ctx, wsdiscovery.Hello, newCamera)
					time.Sleep(30 * time.Second)
				})
				took := tr.sentAt[len(tr.sentAt)-1] - hello.Sub(tr.began)
				if len(tr.lists) != 2 || len(tr.lists[1]) != 1 || took > 1500*time.Millisecond {
					t.Errorf("%d lists at %v, the last one %v after Hello", len(tr.lists), tr.sentAt, took)
				}
			})
		})
	}
}

// TestHelloAmongChecks is the same while many cameras are checked that have lost their
// power.
func TestHelloAmongChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &lossyNetwork{messages: make(chan message), loses: never}
		for n := range 500 {
			network.cameras = append(network.cameras, firstSilent+n)
		}
		tr := &trial{network: network}
		var off atomic.Bool
		tr.perform = func(r request) outcome {
			if off.Load() && !isCamera(r, newCamera) {
				time.Sleep(15 * time.Second)
				return outcome{request: r}
			}
			return always(r)
		}
		var hello time.Duration
		tr.run(t, "", func(ctx context.Context) {
			time.Sleep(15 * time.Second)
			off.Store(true)
			network.mu.Lock()
			network.cameras = nil
			network.mu.Unlock()
			time.Sleep(35 * time.Second) // until the checks begin
			hello = time.Since(tr.began)
			network.announce(ctx, wsdiscovery.Hello, newCamera)
			time.Sleep(2 * time.Second)
		})
		if len(tr.lists) < 2 || len(tr.lists[1]) != 501 || tr.sentAt[1]-hello > 1500*time.Millisecond {
			t.Errorf("lists at %v; want one with the new camera soon after %v", tr.sentAt, hello)
		}
	})
}

// TestOneHostWithManyCameras bounds the requests to a host, which may hang.
func TestOneHostWithManyCameras(t *testing.T) {
	b := newBench(t, "")
	from, a := cameraNumber(wsdiscovery.Match, 1)
	for n := range maxCamerasPerHost {
		a.UUID = fmt.Sprint(n)
		b.announced(b.now, from, a)
	}
	b.hears(wsdiscovery.Match, 2)
	requests := b.begin(b.now)
	other := slices.ContainsFunc(requests, func(r request) bool { return isCamera(r, 2) })
	if len(requests) != maxRequestsPerHost+1 || !other {
		t.Errorf("%d requests at the same time, want %d, and one to the other host", len(requests), maxRequestsPerHost)
	}
	for range 3 * maxCamerasPerHost {
		for _, r := range requests {
			b.ended(b.now, outcome{request: r, alive: true, uuid: r.uuid})
		}
		requests = b.begin(b.now)
	}
	if devices := b.devices(); len(devices) != maxCamerasPerHost+1 {
		t.Errorf("%d devices, want all", len(devices))
	}
}

// TestLongestWaitComesFirst has more cameras than may be asked at the same time.
func TestLongestWaitComesFirst(t *testing.T) {
	b := newBench(t, "")
	for n := range 2 * maxQuickRequests {
		b.hears(wsdiscovery.Match, n+1)
		b.now = b.now.Add(time.Millisecond)
	}
	b.begin(b.now)
	for n := range maxQuickRequests {
		if _, a := cameraNumber(wsdiscovery.Match, n+1); b.cameras[key{a.XAddrs[0], a.UUID}].began.IsZero() {
			t.Errorf("camera %d still waits", n+1)
		}
	}
}

// TestBoundsKeepAnsweringCameras checks that only cameras that never answer are removed to make
// place. The others do not answer their first request.
func TestBoundsKeepAnsweringCameras(t *testing.T) {
	b := newBench(t, "")
	from, a := cameraNumber(wsdiscovery.Match, 1)
	for n := range maxCamerasPerHost {
		a.UUID = fmt.Sprint(n)
		b.announced(b.now, from, a)
	}
	asked := map[string]bool{}
	for range maxCamerasPerHost {
		for _, r := range b.begin(b.now) {
			b.ended(b.now, outcome{request: r, alive: asked[r.uuid] && r.uuid != "7", uuid: r.uuid})
			asked[r.uuid] = true
		}
		b.now = b.now.Add(minRetryDelay)
	}
	for _, uuid := range []string{"another", "one more"} {
		a.UUID = uuid
		b.announced(b.now, from, a)
		for _, r := range b.begin(b.now) {
			b.ended(b.now, outcome{request: r, alive: true, uuid: r.uuid})
		}
	}
	if devices := b.devices(); len(devices) != maxCamerasPerHost || b.cameras[key{a.XAddrs[0], "another"}] == nil {
		t.Errorf("%d devices; want all but the one that did not answer, and another one", len(devices))
	}
	if b.counts[failedCameras] != 2 {
		t.Errorf("the failures are %v, want two", b.counts)
	}
}
