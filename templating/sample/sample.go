// Package sample makes stand-ins for Instances that nobody has discovered yet, so
// that templates can be rendered when a Configuration is written or admitted.
//
// A stand-in has every property that the templates mention, and what is known of
// real devices on top. Two stand-ins differ in all that can differ from device to
// device: name, nodes, properties. Templates that give both the same object would
// give it to all devices.
package sample

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/templating"
)

// Options says what is known of the devices.
type Options struct {
	Configuration string
	Namespace     string
	Capacity      int64
	// Properties all devices have, such as the brokerProperties of the
	// Configuration. They are taken as they are.
	Properties map[string]string
	// Keys are properties that the templates read, see Set.PropertyKeys. Those not
	// among Properties get a value that fits their name.
	Keys []string
	// Shared says that more than one node can see a device.
	Shared bool
}

// Instances makes n Instances, the same ones for the same options.
func Instances(o Options, n int) []templating.Instance {
	instances := make([]templating.Instance, n)
	for i := range instances {
		device := fmt.Sprintf("sample-%d", i)
		nodes := []string{fmt.Sprintf("node-%c", 'a'+i%26)}
		if o.Shared {
			nodes = append(nodes, fmt.Sprintf("node-%c", 'a'+(i+1)%26))
		}
		instances[i] = templating.Instance{
			Name:       v0.InstanceName(o.Configuration, device, nodes[0], o.Shared),
			Properties: properties(o, i),
			Nodes:      nodes,
			Shared:     o.Shared,
		}
	}
	return instances
}

// Values are the values of instance-level templates for one Instance.
func Values(o Options, instance templating.Instance) templating.Values {
	return templating.Values{Configuration: o.Configuration, Namespace: o.Namespace, Capacity: o.Capacity, Instance: instance}
}

// Group is the values of configuration-level templates for Instances.
func Group(o Options, instances []templating.Instance) templating.Values {
	return templating.Values{Configuration: o.Configuration, Namespace: o.Namespace, Capacity: o.Capacity, Instances: instances}
}

func properties(o Options, device int) map[string]string {
	made := make(map[string]string, len(o.Keys)+len(o.Properties))
	for _, key := range o.Keys {
		made[key] = Property(key, device)
	}
	maps.Copy(made, o.Properties)
	return made
}

// kinds of properties by words in their keys, and a value that templates can work
// with: what looks like a port becomes a number. The first that fits counts.
var kinds = []struct {
	words []string
	value func(device int) string
}{
	{[]string{"url", "uri", "endpoint", "discovery_url"}, func(d int) string { return fmt.Sprintf("opc.tcp://192.0.2.%d:4840/path", 10+d) }},
	{[]string{"mac"}, func(d int) string { return fmt.Sprintf("02:00:00:00:00:%02x", 10+d) }},
	{[]string{"port", "count", "index", "number", "num", "width", "height", "rate", "fps", "timeout", "capacity", "size", "replicas"}, func(d int) string { return fmt.Sprint(8000 + d) }},
	{[]string{"ip", "address", "addr", "host"}, func(d int) string { return fmt.Sprintf("192.0.2.%d", 10+d) }},
	{[]string{"devnode", "device", "devpath", "path"}, func(d int) string { return fmt.Sprintf("/dev/sample%d", d) }},
	{[]string{"version"}, func(d int) string { return fmt.Sprintf("1.%d.0", d) }},
	{[]string{"enabled", "secure", "tls", "ready"}, func(d int) string { return fmt.Sprint(d%2 == 0) }},
}

// Property is a stand-in for the value of a property of a device, judged by the
// words of its key: DEVICE_IP is an address and Camera-Port a number.
func Property(key string, device int) string {
	words := strings.FieldsFunc(strings.ToLower(key), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	for _, kind := range kinds {
		for _, word := range words {
			if slices.Contains(kind.words, word) {
				return kind.value(device)
			}
		}
	}
	return fmt.Sprintf("sample-%d", device)
}
