package mqtt

import (
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"akri.sh/akri/discovery/mqtt/convention"
	"akri.sh/akri/discovery/mqtt/details"
	"akri.sh/akri/discovery/mqtt/follow"
)

// decoder is a convention that records whether another payload could be decoded meanwhile.
type decoder struct {
	convention.Convention
	exclusive []bool
}

// Apply implements [convention.Convention].
func (d *decoder) Apply(convention.Message, time.Time) convention.Effect {
	free := decoding.TryLock()
	if free {
		decoding.Unlock()
	}
	d.exclusive = append(d.exclusive, !free)
	return convention.Effect{}
}

// TestLargePayloads checks that the memory for decoding a large payload is needed once, however
// many brokers send one.
func TestLargePayloads(t *testing.T) {
	wanted, err := details.Parse(homieDetails("tcp://b"))
	if err != nil {
		t.Fatal(err)
	}
	d := &decoder{Convention: convention.New(wanted)}
	s := &session{follower: follow.New(follow.Options{Convention: d})}
	for _, size := range []int{largePayload, largePayload + 1, 1} {
		if err := s.handle(&packets.PublishPacket{TopicName: "a", Payload: make([]byte, size)}); err != nil {
			t.Fatal(err)
		}
	}
	if len(d.exclusive) != 3 || d.exclusive[0] || !d.exclusive[1] || d.exclusive[2] {
		t.Errorf("decoded one at a time: %v, want only the large one", d.exclusive)
	}
}
