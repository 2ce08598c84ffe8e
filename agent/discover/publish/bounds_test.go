package publish

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"akri.sh/akri/agent/discover/streams"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/fulltest"
)

// withProperties returns a device of this node with n properties of a length.
func withProperties(id string, n, length int) streams.Device {
	properties := map[string]string{}
	for i := range n {
		properties[fmt.Sprintf("P%03d", i)] = strings.Repeat("v", length)
	}
	return streams.Device{Key: streams.Key{ID: id}, Properties: properties}
}

func known(devices ...streams.Device) []streams.Device {
	var list []streams.Device
	for _, d := range devices {
		d.Online = true
		list = append(list, d)
	}
	return list
}

func TestExcess(t *testing.T) {
	longName := streams.Device{Key: streams.Key{ID: "cam"}, Properties: map[string]string{strings.Repeat("N", 254): "v"}}
	for name, test := range map[string]struct {
		device streams.Device
		says   string
	}{
		"no properties":      {withProperties("cam", 0, 0), ""},
		"as many as allowed": {withProperties("cam", v0.MaxProperties, 10), ""},
		"as long as allowed": {withProperties("cam", 1, v0.MaxPropertyLength), ""},
		"too many":           {withProperties("cam", v0.MaxProperties+1, 1), `device "cam" has 501 properties, the limit is 500`},
		"too long": {withProperties("cam", 1, v0.MaxPropertyLength+1),
			`property "P000" of device "cam" has 8193 bytes, the limit is 8192`},
		"too long together": {withProperties("cam", 3, v0.MaxPropertyLength),
			`the properties of device "cam" have 24588 bytes, the limit is 16384`},
		"a name that is long":   {longName, "whose name has 254 bytes, the limit is 253"},
		"an id of many bytes":   {withProperties(strings.Repeat("i", 4000), 1, 9000), "iiii…"},
		"an id with an escape":  {withProperties("\x1b[2Jcam", 1, 9000), `"\x1b[2Jcam"`},
		"a megabyte for a name": {withProperties("cam", 1, 1<<20), "has 1048576 bytes"},
	} {
		got := excess(test.device)
		if test.says == "" && got != "" || !strings.Contains(got, test.says) || len(got) > 300 {
			t.Errorf("%s: %q, want %q", name, got, test.says)
		}
	}
}

// Of too many devices, those stay that have an Instance, and the reasons do not
// grow with their number.
func TestTooManyDevices(t *testing.T) {
	here := nodeView{node: "node-a", configuration: &v0.Configuration{}}
	here.configuration.Name = "door"
	var devices []streams.Device
	for i := range v0.MaxDevices + 10 {
		devices = append(devices, withProperties(fmt.Sprintf("cam-%04d", i), 1, 1))
	}
	last := devices[len(devices)-1]
	existing := intent(here.configuration, last, "node-a", v0.InstanceName("door", last.ID, "node-a", false))

	list := here.candidates(known(devices...), []*v0.Instance{existing})
	newCounts(func() []*v0.Instance { return nil }).fit(here, list, nil)
	accepted := 0
	for _, c := range list {
		if c.refused == "" {
			accepted++
		}
	}
	if end := list[len(list)-1]; accepted != v0.MaxDevices || end.refused != "" || end.have != existing {
		t.Errorf("%d devices are accepted, want %d; the one with an Instance: %+v", accepted, v0.MaxDevices, end)
	}
	reasons := refusals(list)
	if len(reasons) != maxRefusals+1 ||
		!strings.Contains(reasons[0], `device "cam-0999" is not published: a Configuration may have at most 1000 devices`) ||
		reasons[maxRefusals] != "7 more devices are refused" {
		t.Errorf("the reasons are %q", reasons)
	}
}

// A device that is too large is refused; the others are published. An Instance that
// exists stays as it is.
func TestOneLargeDeviceDisturbsNoOther(t *testing.T) {
	fulltest.Only(t)
	b := newBench(t)
	p := b.publisher("node-a")
	small, large := withProperties("small", 2, 10), withProperties("large", 1, 1<<20)
	b.publish(p, small)
	smallName := v0.InstanceName("door", "small", "node-a", false)

	grown := withProperties("small", 1, 1<<20)
	other := withProperties("other", 2, 10)
	result := b.publish(p, grown, large, other)
	if len(result.Refused) != 2 || !slices.ContainsFunc(result.Refused, func(reason string) bool {
		return strings.Contains(reason, `property "P000" of device "large" has 1048576 bytes, the limit is 8192: let the handler report`)
	}) {
		t.Errorf("refused: %q", result.Refused)
	}
	if len(result.Devices) != 2 {
		t.Errorf("%d devices are offered, want the two with an Instance", len(result.Devices))
	}
	if have := b.get(smallName); !maps.Equal(have.Spec.BrokerProperties, small.Properties) {
		t.Errorf("the Instance that existed has the properties %v", have.Spec.BrokerProperties)
	}
	b.get(v0.InstanceName("door", "other", "node-a", false))
}
