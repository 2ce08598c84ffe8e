package onvif

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/monitor"
	"akri.sh/akri/discovery/onvif/details"
	"akri.sh/akri/discovery/onvif/wsdiscovery"
	"akri.sh/akri/internal/backoff"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestItemsThatNoCameraHas checks that they do not stop a Configuration, and are reported at once.
func TestItemsThatNoCameraHas(t *testing.T) {
	const some = "ipAddresses: {action: Exclude, items: [gate.example]}\nmacAddresses: {items: ['02:00', '02:00:5e:10:00:01']}\n"
	for text, want := range map[string]string{
		some: "context canceled", "ipAddresses: {items: [gate.example]}\n": "ipAddresses.items[0]", some + "misses: 0\n": "misses: want",
	} {
		ended, end := context.WithCancel(t.Context())
		end()
		var lines strings.Builder
		h := Handler{Logger: slog.New(slog.NewTextHandler(&lines, nil))}
		err := h.Discover(ended, discovery.Request{Details: text + "interfaces: [no-such0]"}, func([]discovery.Device) error { return nil })
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
		logged := strings.Count(lines.String(), "ignored items") == 1 && strings.Contains(lines.String(), "ipAddresses.items[0]") &&
			strings.Contains(lines.String(), "macAddresses.items[0]")
		if logged != (text == some) {
			t.Errorf("%q: logged %s", text, lines.String())
		}
	}
}

// lossyNetwork is a network with cameras, which loses packets.
type lossyNetwork struct {
	messages chan message
	mu       sync.Mutex
	cameras  []int
	// loses reports whether to lose a packet. It is called by one goroutine at a time.
	loses  func() bool
	probes atomic.Int64
	// sending is how long it takes to probe the listed addresses, at which all cameras are
	// if it is set.
	sending time.Duration
}

func (n *lossyNetwork) heard() <-chan message { return n.messages }

func (n *lossyNetwork) probe(ctx context.Context) {
	n.probes.Add(1)
	if n.sending == 0 {
		n.askCameras(ctx)
	}
}

func (n *lossyNetwork) sweep(ctx context.Context) {
	if n.sending > 0 {
		n.askCameras(ctx)
		backoff.Sleep(ctx, n.sending/2)
	}
}

// askCameras sends each probe twice; a camera answers each kind twice, if it has got a
// copy.
func (n *lossyNetwork) askCameras(ctx context.Context) {
	n.mu.Lock()
	cameras := n.cameras
	n.mu.Unlock()
	for _, c := range cameras {
		if n.sending > 0 && !backoff.Sleep(ctx, n.sending/2/time.Duration(len(cameras))) {
			return
		}
		for range 2 {
			if lost := n.loses(); n.loses() && lost {
				continue
			}
			for range 2 {
				if !n.loses() {
					n.announce(ctx, wsdiscovery.Match, c)
				}
			}
		}
	}
}

func (n *lossyNetwork) announce(ctx context.Context, kind wsdiscovery.Kind, c int) {
	from, announcement := cameraNumber(kind, c)
	select {
	case n.messages <- message{from: from, Announcement: announcement}:
	case <-ctx.Done():
	}
}

// trial runs a session in a bubble until the test function returns.
type trial struct {
	network *lossyNetwork
	// alive is the answer to a request.
	perform func(request) outcome
	lists   [][]discovery.Device
	began   time.Time
	// random is for jitter; nil for a generator.
	random func() float64
	sentAt []time.Duration
}

func (tr *trial) run(t *testing.T, text string, during func(ctx context.Context)) {
	t.Helper()
	settings, err := details.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	tr.began = time.Now()
	random := tr.random
	if random == nil {
		random = rand.New(rand.NewPCG(1, 2)).Float64
	}
	s := &session{
		settings: settings, network: tr.network,
		perform: func(_ context.Context, r request) outcome { return tr.perform(r) },
		tracker: newTracker(settings, silent(func(string) {}), random),
	}
	ended := make(chan error, 1)
	go func() {
		ended <- s.run(ctx, func(devices []discovery.Device) error {
			tr.lists = append(tr.lists, devices)
			tr.sentAt = append(tr.sentAt, time.Since(tr.began))
			return nil
		})
	}()
	during(ctx)
	synctest.Wait()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("ended by %v", err)
	}
}

// silent returns a reporter that logs nothing.
func silent(count func(reason string)) *monitor.Reporter {
	return monitor.NewReporter(count, slog.New(slog.DiscardHandler), "")
}

func always(r request) outcome { return outcome{request: r, alive: true, uuid: r.uuid} }

func never() bool { return false }

// TestLossOfOnePacketInThree runs for ten hours with many cameras: no list but the first
// may be sent. A request fails as often as one of TCP does with that loss; see check.
func TestLossOfOnePacketInThree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(3, 4))
		tr := &trial{network: &lossyNetwork{messages: make(chan message), loses: func() bool { return random.IntN(3) == 0 }}}
		for n := range 20 {
			tr.network.cameras = append(tr.network.cameras, n+1)
		}
		var mu sync.Mutex
		checks := rand.New(rand.NewPCG(5, 6))
		tr.perform = func(r request) outcome {
			o := always(r)
			if r.check {
				mu.Lock()
				defer mu.Unlock()
				o.alive = checks.IntN(100) != 0
			}
			return o
		}
		tr.run(t, "", func(context.Context) { time.Sleep(10 * time.Hour) })
		if len(tr.lists) == 0 || len(tr.lists[0]) != 20 {
			t.Fatalf("%d lists; the first lacks cameras", len(tr.lists))
		}
		for i, list := range tr.lists[1:] {
			t.Errorf("after %v: a list of %d devices", tr.sentAt[i+1], len(list))
		}
		if tr.network.probes.Load() < 3000 {
			t.Errorf("only %d probes in ten hours", tr.network.probes.Load())
		}
	})
}

// TestFirstList checks that an agent gets a list soon after it has connected, and that
// the list has cameras that answer slowly.
func TestFirstList(t *testing.T) {
	for name, tc := range map[string]struct {
		cameras []int
		slow    time.Duration
		want    int
		after   time.Duration
	}{
		"no camera":               {nil, 0, 0, 2 * time.Second},
		"a camera":                {[]int{1}, 0, 1, 2 * time.Second},
		"a slow camera":           {[]int{1}, 4 * time.Second, 1, 4 * time.Second},
		"one that never responds": {[]int{1}, time.Minute, 0, 12 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr := &trial{network: &lossyNetwork{messages: make(chan message), cameras: tc.cameras, loses: never}}
				tr.perform = func(r request) outcome { time.Sleep(tc.slow); return always(r) }
				tr.run(t, "", func(context.Context) { time.Sleep(30 * time.Second) })
				if len(tr.lists) != 1 || len(tr.lists[0]) != tc.want || tr.sentAt[0] != tc.after {
					t.Errorf("%d lists, sent at %v, want one with %d devices after %v", len(tr.lists), tr.sentAt, tc.want, tc.after)
				}
			})
		})
	}
}

// TestHelloAndBye checks that both have an effect at once.
func TestHelloAndBye(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := &trial{network: &lossyNetwork{messages: make(chan message), loses: never}}
		var gone atomic.Bool
		tr.perform = func(r request) outcome { o := always(r); o.alive = !gone.Load(); return o }
		var hello, bye time.Duration
		tr.run(t, "", func(ctx context.Context) {
			time.Sleep(15 * time.Second)
			hello = time.Since(tr.began)
			tr.network.announce(ctx, wsdiscovery.Hello, 1)
			time.Sleep(15 * time.Second)
			gone.Store(true)
			bye = time.Since(tr.began)
			tr.network.announce(ctx, wsdiscovery.Bye, 1)
			time.Sleep(time.Second)
		})
		if len(tr.lists) != 3 || len(tr.lists[1]) != 1 || len(tr.lists[2]) != 0 || tr.sentAt[1] != hello || tr.sentAt[2] != bye {
			t.Errorf("%d lists at %v; want a camera at %v, none at %v", len(tr.lists), tr.sentAt, hello, bye)
		}
	})
}

// TestKilledCamera checks when a camera is gone that says no Bye.
func TestKilledCamera(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := &trial{network: &lossyNetwork{messages: make(chan message), cameras: []int{1}, loses: never}}
		var gone atomic.Bool
		var killed time.Duration
		tr.perform = func(r request) outcome { o := always(r); o.alive = !gone.Load(); return o }
		tr.run(t, "{discoveryTimeoutSeconds: 1, intervalSeconds: 2, misses: 2}", func(context.Context) {
			time.Sleep(10 * time.Second)
			tr.network.mu.Lock()
			tr.network.cameras = nil
			tr.network.mu.Unlock()
			gone.Store(true)
			killed = time.Since(tr.began)
			time.Sleep(10 * time.Second)
		})
		if len(tr.lists) != 2 || len(tr.lists[1]) != 0 {
			t.Fatalf("%d lists", len(tr.lists))
		}
		if took := tr.sentAt[1] - killed; took < 3*time.Second || took > 8*time.Second {
			t.Errorf("gone after %v, want about two probes of 2 s each", took)
		}
	})
}

// TestExtraProbes bounds the probes that Hello without addresses causes.
func TestExtraProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := &trial{network: &lossyNetwork{messages: make(chan message), loses: never}, perform: always}
		tr.run(t, "", func(ctx context.Context) {
			time.Sleep(time.Second)
			from, announcement := cameraNumber(wsdiscovery.Hello, 1)
			announcement.XAddrs = nil
			for range 1000 {
				tr.network.messages <- message{from: from, Announcement: announcement}
				time.Sleep(9 * time.Millisecond)
			}
		})
		if probes := tr.network.probes.Load(); probes < 5 || probes > 12 {
			t.Errorf("%d probes in ten seconds, want about one per second", probes)
		}
	})
}

// TestChangesAreJoined checks that many changes make few lists.
func TestChangesAreJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := &trial{network: &lossyNetwork{messages: make(chan message), loses: never}, perform: always}
		tr.run(t, "", func(ctx context.Context) {
			time.Sleep(3 * time.Second)
			for n := range 1000 {
				tr.network.announce(ctx, wsdiscovery.Hello, n+1)
				time.Sleep(time.Millisecond)
			}
			time.Sleep(time.Second)
		})
		last := tr.lists[len(tr.lists)-1]
		if len(tr.lists) > 6 || len(last) != 1000 {
			t.Errorf("%d lists, the last with %d devices", len(tr.lists), len(last))
		}
	})
}
