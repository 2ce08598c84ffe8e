package sample

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/templating"
)

// UID is the UID of an Instance that does not exist.
const UID = "00000000-0000-4000-8000-000000000000"

// DeviceID returns the ID of a device, by its number.
func DeviceID(device int) string { return fmt.Sprintf("sample-%d", device) }

// Nodes returns the nodes that see a device: one, or two if it is shared.
func Nodes(device int, shared bool) []string {
	nodes := []string{fmt.Sprintf("node-%c", 'a'+device%26)}
	if shared {
		nodes = append(nodes, fmt.Sprintf("node-%c", 'a'+(device+1)%26))
	}
	return nodes
}

// InstanceName returns the name of the Instance of a device.
func InstanceName(configuration string, device int, shared bool) string {
	return v0.InstanceName(configuration, DeviceID(device), Nodes(device, shared)[0], shared)
}

// Options describe the devices.
type Options struct {
	Configuration string
	Namespace     string
	Capacity      int64
	// Properties are set on all devices, such as the brokerProperties of the
	// Configuration.
	Properties map[string]string
	// Keys are properties that the templates read, see Set.PropertyKeys. Those that
	// Properties does not set get a value that fits their name.
	Keys []string
	// Shared is set if more than one node can see a device.
	Shared bool
}

// Instances returns n Instances.
func Instances(o Options, n int) []templating.Instance {
	instances := make([]templating.Instance, n)
	for i := range instances {
		instances[i] = templating.Instance{
			Name:       InstanceName(o.Configuration, i, o.Shared),
			Properties: properties(o, i),
			Nodes:      Nodes(i, o.Shared),
			Shared:     o.Shared,
		}
	}
	return instances
}

// Values returns the values of instance-level templates for one Instance.
func Values(o Options, instance templating.Instance) templating.Values {
	return templating.Values{Configuration: o.Configuration, Namespace: o.Namespace, Capacity: o.Capacity, Instance: instance}
}

// Group returns the values of configuration-level templates for Instances.
func Group(o Options, instances []templating.Instance) templating.Values {
	return templating.Values{Configuration: o.Configuration, Namespace: o.Namespace, Capacity: o.Capacity, Instances: instances}
}

func properties(o Options, device int) map[string]string {
	all := make(map[string]string, len(o.Keys)+len(o.Properties))
	for _, key := range o.Keys {
		all[key] = Property(key, device)
	}
	maps.Copy(all, o.Properties)
	return all
}

// kinds of properties, by words in their keys, with a value that templates can use:
// what looks like a port becomes a number. The first match wins.
var kinds = []struct {
	words []string
	value func(device int) string
}{
	{[]string{"url", "uri", "endpoint", "discovery_url"}, func(d int) string {
		return fmt.Sprintf("opc.tcp://192.0.2.%d:4840/path", 10+d)
	}},
	{[]string{"mac"}, func(d int) string { return fmt.Sprintf("02:00:00:00:00:%02x", 10+d) }},
	{[]string{
		"port", "count", "index", "number", "num", "width", "height", "rate", "fps", "timeout", "capacity", "size", "replicas",
	}, func(d int) string { return fmt.Sprint(8000 + d) }},
	{[]string{"ip", "address", "addr", "host"}, func(d int) string { return fmt.Sprintf("192.0.2.%d", 10+d) }},
	{[]string{"devnode", "device", "devpath", "path"}, func(d int) string { return fmt.Sprintf("/dev/sample%d", d) }},
	{[]string{"version"}, func(d int) string { return fmt.Sprintf("1.%d.0", d) }},
	{[]string{"enabled", "secure", "tls", "ready"}, func(d int) string { return fmt.Sprint(d%2 == 0) }},
}

// Property returns a value for a property of a device that fits the words of its
// key: DEVICE_IP is an address and Camera-Port a number.
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
