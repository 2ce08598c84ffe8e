package web

import (
	"maps"
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

// result is the outcome of a request to a device.
type result struct {
	target target
	err    error
	// properties are those in the response.
	properties map[string]string
}

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
func (s *state) apply(results []result) {
	listed := map[string]bool{}
	for _, r := range results {
		listed[r.target.id] = true
		entry := s.devices[r.target.id]
		switch {
		case r.err == nil:
			s.devices[r.target.id] = &knownDevice{device: r.device()}
		case entry == nil:
		case entry.missed+1 >= s.misses:
			delete(s.devices, r.target.id)
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

func (r result) device() discovery.Device {
	properties := map[string]string{}
	maps.Copy(properties, r.target.properties)
	maps.Copy(properties, r.properties)
	properties[urlProperty], properties[tutorialProperty] = r.target.url, r.target.url
	return discovery.Device{ID: r.target.id, Properties: properties}
}
