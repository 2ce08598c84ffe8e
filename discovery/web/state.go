package web

import (
	"slices"
	"strings"

	"akri.sh/akri/discovery"
)

// Names of the properties that every device has. The second is that of the handler in
// Akri's tutorial.
const (
	urlProperty      = "HTTP_URL"
	tutorialProperty = "AKRI_HTTP_DEVICE_ENDPOINT"
)

// state is what is known of the devices of a Configuration.
type state struct {
	// misses is how many requests in a row must fail before a device is gone.
	misses  int
	devices map[string]*knownDevice
}

type knownDevice struct {
	device discovery.Device
	missed int
}

func newState(misses int) *state { return &state{misses: misses, devices: map[string]*knownDevice{}} }

// apply records the outcomes of a scan of all devices.
func (s *state) apply(targets []target) {
	listed := map[string]bool{}
	for _, t := range targets {
		listed[t.id] = true
		entry := s.devices[t.id]
		switch {
		case t.err == nil:
			t.properties[urlProperty], t.properties[tutorialProperty], t.properties[discovery.DisplayName] = t.url, t.url, t.url
			s.devices[t.id] = &knownDevice{device: discovery.Device{ID: t.id, Properties: t.properties}}
		case entry == nil:
		case entry.missed+1 >= s.misses:
			delete(s.devices, t.id)
		default:
			entry.missed++
		}
	}
	for id := range s.devices {
		if !listed[id] { // the index no longer has it
			delete(s.devices, id)
		}
	}
}

// list returns the devices, sorted by id.
func (s *state) list() []discovery.Device {
	devices := make([]discovery.Device, 0, len(s.devices))
	for _, entry := range s.devices {
		devices = append(devices, entry.device)
	}
	slices.SortFunc(devices, func(a, b discovery.Device) int { return strings.Compare(a.ID, b.ID) })
	return devices
}
