package onvif

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/handlertest"
	"akri.sh/akri/discovery/internal/budget"
	"akri.sh/akri/discovery/onvif/details"
	"akri.sh/akri/discovery/onvif/wsdiscovery"
)

// crowdedNetwork is a network in which one camera after the other announces itself.
type crowdedNetwork struct {
	messages chan message
	count    int
}

func (n crowdedNetwork) heard() <-chan message { return n.messages }

func (n crowdedNetwork) probe(ctx context.Context) {
	for i := range n.count {
		host := netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
		a := wsdiscovery.Announcement{
			Kind: wsdiscovery.Match, UUID: fmt.Sprintf("%d-%s", i, strings.Repeat("u", 100)),
			XAddrs: []string{"http://" + host.String() + "/" + strings.Repeat("x", 100)}, Scopes: []string{"onvif://www.onvif.org/type/x"},
		}
		select {
		case n.messages <- message{from: host, Announcement: a}:
		case <-ctx.Done():
			return
		}
	}
}

func (crowdedNetwork) sweep(context.Context) {}

// crowdedHandler finds as many cameras as the details of a request say. Each reports all
// that it may.
type crowdedHandler struct{}

// Discover implements [discovery.Handler].
func (crowdedHandler) Discover(ctx context.Context, requested discovery.Request, send func([]discovery.Device) error) error {
	count := 0
	fmt.Sscan(requested.Details, &count)
	settings, err := details.Parse("discoveryTimeoutSeconds: 1")
	if err != nil {
		return err
	}
	s := &session{
		settings: settings, network: crowdedNetwork{make(chan message), count}, known: budget.Open(ctx),
		tracker: newTracker(settings, func(string) {}, rand.Float64),
		perform: func(_ context.Context, r request) outcome {
			o := outcome{request: r, alive: true, uuid: r.uuid, facts: facts{}}
			for _, property := range []string{PropertyManufacturer, PropertyModel, PropertySerialNumber, PropertyFirmware, PropertyHardware} {
				o.facts[property] = strings.Repeat("f", maxPropertyBytes)
			}
			return o
		},
	}
	return s.run(ctx, send)
}

// TestCrowdedNetworks checks that the cameras of many Configurations leave memory for those
// of others.
func TestCrowdedNetworks(t *testing.T) {
	crowd := handlertest.Crowd{
		Handler: crowdedHandler{}, Modest: discovery.Request{Details: "10"}, Devices: 10, MaxHeap: 52 << 20, Refused: 30,
	}
	for range 60 {
		crowd.Hostile = append(crowd.Hostile, discovery.Request{Details: "2000"})
	}
	crowd.Run(t)
}
