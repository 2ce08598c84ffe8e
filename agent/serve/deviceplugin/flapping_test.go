package deviceplugin

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"akri.sh/akri/agent/serve/slots"
)

// slowStream is a stream to a kubelet that takes a while to receive each list.
type slowStream struct {
	plugin.DevicePlugin_ListAndWatchServer
	ctx   context.Context
	lists []*plugin.ListAndWatchResponse
}

func (s *slowStream) Context() context.Context { return s.ctx }

func (s *slowStream) Send(list *plugin.ListAndWatchResponse) error {
	time.Sleep(20 * time.Millisecond)
	s.lists = append(s.lists, list)
	return nil
}

// TestListsOfAFlappingDevice checks that the kubelet gets few lists of a device that flaps, also
// if it changes while a list is sent, and the last one in the end.
func TestListsOfAFlappingDevice(t *testing.T) {
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
		s.setList([]slots.Health{{ID: 0, Healthy: true}})
		s.flush(ctx)
		cancel()
		<-ended
		if sent, most := len(stream.lists), 2+seconds*int(time.Second/coalesce); sent < seconds || sent > most {
			t.Errorf("%d lists in %d s, want at most %d", sent, seconds, most)
		}
		if last := stream.lists[len(stream.lists)-1]; last.GetDevices()[0].GetHealth() != plugin.Healthy {
			t.Errorf("the last list is %v", last)
		}
	})
}
