package webhook

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/templating"
	"akri.sh/akri/templating/sample"
)

// guess makes up a property that nobody has told, different for each device. No
// guess fits every template, so there are several, and a template is well if it
// is with one of them.
type guess func(key string, device int) string

// guesses in the order in which they are tried.
var guesses = []guess{
	// A text, a label, a name and a number at once.
	func(_ string, device int) string { return fmt.Sprint(1 + device) },
	// What the key's words suggest: an address, a port, a file.
	func(key string, device int) string {
		if value := sample.Property(key, device); !strings.HasPrefix(value, "sample-") {
			return value
		}
		return fmt.Sprint(1 + device)
	},
	// Different for each key too.
	func(key string, device int) string {
		word := strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
				return r
			}
			return '-'
		}, strings.ToLower(key))
		return strings.Trim(fmt.Sprintf("%.20s", word), "-") + fmt.Sprintf("-%d", device)
	},
}

// devices makes stand-ins for the devices of a Configuration.
type devices struct {
	configuration string
	// fixed are the same for all devices, told for one of them.
	fixed, told map[string]string
	// guessed are keys that templates read and nobody has told.
	guessed []string
}

// devicesOf knows of the properties what there is to know: brokerProperties,
// which win for real devices too, then sampleProperties, then those of a device
// that exists.
func devicesOf(r *review) devices {
	d := devices{configuration: r.configuration.Name, fixed: r.configuration.Spec.BrokerProperties, told: map[string]string{}}
	if len(r.instances) > 0 {
		maps.Copy(d.told, r.instances[0].Spec.BrokerProperties)
	}
	maps.Copy(d.told, r.configuration.Spec.SampleProperties)
	for _, key := range append(r.compiled.Instance.PropertyKeys(), r.compiled.Group.PropertyKeys()...) {
		_, fixed := d.fixed[key]
		if _, told := d.told[key]; !told && !fixed && !slices.Contains(d.guessed, key) {
			d.guessed = append(d.guessed, key)
		}
	}
	return d
}

// device makes a stand-in, the same one for the same arguments. They are all on
// one node, as real devices can be; a shared one is on another too.
func (d devices) device(number int, invent guess, shared bool) templating.Instance {
	properties := make(map[string]string, len(d.told)+len(d.guessed)+len(d.fixed))
	for key, value := range d.told {
		if number > 0 {
			value += fmt.Sprint(number) // another device, of the same make
		}
		properties[key] = value
	}
	for _, key := range d.guessed {
		properties[key] = invent(key, number)
	}
	maps.Copy(properties, d.fixed)
	nodes := sample.Nodes(0, shared)
	return templating.Instance{
		Name:       v0.InstanceName(d.configuration, sample.DeviceID(number), nodes[0], shared),
		Properties: properties,
		Nodes:      nodes,
		Shared:     shared,
	}
}
