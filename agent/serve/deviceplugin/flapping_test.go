package deviceplugin

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"akri.sh/akri/agent/serve/slots"
	"akri.sh/akri/internal/fulltest"
	"akri.sh/akri/internal/kubelettest"
)

// TestListsOfAFlappingDeviceAreBounded checks that the kubelet, which writes a file for
// each list, gets a list a second of a device that flaps, and the last one in the end.
func TestListsOfAFlappingDeviceAreBounded(t *testing.T) {
	fulltest.Only(t)
	k := kubelettest.Start(t, kubelettest.Options{})
	s, _ := offering(t, k)
	k.Await(camResource, healthy(3))
	online := false
	start := time.Now()
	for ; time.Since(start) < 3*time.Second; time.Sleep(5 * time.Millisecond) {
		online = !online
		s.setList([]slots.Health{{ID: 0, Healthy: online}, {ID: 1, Healthy: online}, {ID: 2, Healthy: online}})
	}
	s.setList([]slots.Health{{ID: 0, Healthy: true}, {ID: 1}, {ID: 2}})
	k.Await(camResource, healthy(1))
	took := time.Since(start)
	// Besides the first list, and one whose timer began before.
	if lists := k.Lists(camResource); lists > listBurst+int(took.Seconds()*float64(listRate))+3 {
		t.Errorf("%d lists within %s", lists, took)
	}
}

// slowStream is a stream to a kubelet that takes a while to receive each list. It counts
// the lists.
type slowStream struct {
	plugin.DevicePlugin_ListAndWatchServer
	ctx   context.Context
	lists int
}

func (s *slowStream) Context() context.Context { return s.ctx }

func (s *slowStream) Send(*plugin.ListAndWatchResponse) error {
	time.Sleep(20 * time.Millisecond)
	s.lists++
	return nil
}

func TestListsThatChangeDuringSendAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s, stream := newService(slots.Resource{Name: "cam-1a2b3c"}, nil), &slowStream{ctx: ctx}
		s.setList([]slots.Health{{ID: 0}})
		ended := make(chan error)
		go func() { ended <- s.ListAndWatch(nil, stream) }()
		const seconds = 30
		for i := range seconds * 200 {
			time.Sleep(5 * time.Millisecond)
			s.setList([]slots.Health{{ID: 0, Healthy: i%2 == 0}})
		}
		cancel()
		<-ended
		if most := 1 + listBurst + seconds*int(listRate); stream.lists < seconds || stream.lists > most {
			t.Errorf("%d lists in %d s, want at most %d", stream.lists, seconds, most)
		}
	})
}

// TestWaitingCallSkipsTheDelay checks that a list for which a call waits is sent at once,
// although the device flaps, even if the list changes again before the stream notices.
func TestWaitingCallSkipsTheDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s, stream := newService(slots.Resource{Name: "cam-1a2b3c"}, nil), &slowStream{ctx: ctx}
		s.setList([]slots.Health{{ID: 0}})
		ended := make(chan error)
		go func() { ended <- s.ListAndWatch(nil, stream) }()
		for i := range 4 * listBurst { // until lists are delayed by a second
			time.Sleep(2 * coalesce)
			s.setList([]slots.Health{{ID: 0, Healthy: i%2 == 0}})
		}
		s.wait(ctx, func() bool { return s.sentV == s.version })
		s.setList([]slots.Health{{ID: 0, Healthy: true}})
		synctest.Wait() // until the stream waits for the delay to pass
		start := time.Now()
		s.update(func() {
			s.urgent = s.version
			s.version++
		})
		s.wait(ctx, func() bool { return s.sentV >= s.urgent })
		if took := time.Since(start); took > flushTimeout {
			t.Errorf("the list is sent after %s, although a call waits for it", took)
		}
		cancel()
		<-ended
	})
}

// TestListsAfterRefusals checks that lists for which calls waited do not delay later
// lists beyond the rate.
func TestListsAfterRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s, stream := newService(slots.Resource{Name: "cam-1a2b3c"}, nil), &slowStream{ctx: ctx}
		s.setList([]slots.Health{{ID: 0}})
		ended := make(chan error)
		go func() { ended <- s.ListAndWatch(nil, stream) }()
		for i := range 60 { // a slot is taken or freed elsewhere, and then a call is refused
			s.setList([]slots.Health{{ID: 0, Healthy: i%2 == 0}})
			time.Sleep(coalesce + 10*time.Millisecond) // until the list waits for its turn
			s.flush(ctx)
		}
		s.wait(ctx, func() bool { return s.sentV == s.version })
		start := time.Now()
		s.setList([]slots.Health{{ID: 0, Healthy: true}})
		s.wait(ctx, func() bool { return s.sentV == s.version })
		if took, most := time.Since(start), time.Duration(float64(time.Second)/float64(listRate))+flushTimeout; took > most {
			t.Errorf("the list is sent after %s, want at most %s", took, most)
		}
		cancel()
		<-ended
	})
}
