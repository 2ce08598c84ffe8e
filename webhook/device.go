package webhook

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/controller/templates"
	"akri.sh/akri/templating"
	"akri.sh/akri/templating/sample"
)

// sampleValue makes up the value of a property, different for each device. No guess fits
// every template, so there are several. A template is valid if it is valid with one
// of them.
type sampleValue func(key string, device int) string

// guesses are tried in this order.
var guesses = []sampleValue{
	// A text, a label value, a name and a number at the same time.
	func(_ string, device int) string { return fmt.Sprint(1 + device) },
	// What the words of the key suggest: an address, a port, a file.
	func(key string, device int) string {
		if value := sample.Property(key, device); !strings.HasPrefix(value, "sample-") {
			return value
		}
		return fmt.Sprint(1 + device)
	},
	// Also different for each key.
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

// deviceFactory makes up the devices that templates are rendered for.
type deviceFactory struct {
	configuration string
	// fixed properties are the same for all devices; known ones are those of one
	// device.
	fixed, known map[string]string
	// observed is set if properties are those of an existing device.
	observed bool
	// guessed are the keys of the other properties that templates read.
	guessed []string
	// siblings are all objects that the templates render for the devices.
	siblings []inventory.Ref
}

// newDeviceFactory collects the known properties: brokerProperties, which take precedence
// for real devices too, then sampleProperties, then those of an existing device.
func newDeviceFactory(
	configuration *v0.Configuration, compiled *templates.Templates, existing map[string]string,
) deviceFactory {
	d := deviceFactory{configuration: configuration.Name, fixed: configuration.Spec.BrokerProperties, known: map[string]string{}}
	maps.Copy(d.known, existing)
	for key := range d.known {
		_, sampled := configuration.Spec.SampleProperties[key]
		_, fixed := d.fixed[key]
		d.observed = d.observed || !sampled && !fixed
	}
	maps.Copy(d.known, configuration.Spec.SampleProperties)
	for _, key := range append(compiled.Instance.PropertyKeys(), compiled.Group.PropertyKeys()...) {
		_, fixed := d.fixed[key]
		if _, known := d.known[key]; !known && !fixed && !slices.Contains(d.guessed, key) {
			d.guessed = append(d.guessed, key)
		}
	}
	return d
}

// guesses reports whether a part of a template reads properties that are made up.
func (d deviceFactory) guesses(part any) bool {
	return len(d.guessed) > 0 && templating.ReadsDevice(part)
}

// distinctGuesses returns the guesses that make up different properties, at least one.
func (d deviceFactory) distinctGuesses() []sampleValue {
	var distinct []sampleValue
	var before map[string]string
	for i, guess := range guesses {
		properties := d.device(0, guess, false).Properties
		if i == 0 || !maps.Equal(properties, before) {
			distinct = append(distinct, guess)
		}
		before = properties
	}
	return distinct
}

// observes reports whether a template reads properties of an existing device.
func (d deviceFactory) observes(source map[string]any) bool {
	return d.observed && (source == nil || templating.ReadsDevice(source))
}

// device returns a made-up device, always the same one for the same arguments. All
// of them are on one node, as real devices can be; a shared one is also on another
// node.
func (d deviceFactory) device(number int, valueOf sampleValue, shared bool) templating.Instance {
	properties := make(map[string]string, len(d.known)+len(d.guessed)+len(d.fixed))
	for key, value := range d.known {
		if number > 0 {
			value += fmt.Sprint(number) // another device of the same model
		}
		properties[key] = value
	}
	for _, key := range d.guessed {
		properties[key] = valueOf(key, number)
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
