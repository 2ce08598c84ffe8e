package streams

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"akri.sh/akri/agent/discover/registry"
)

// What the lists of all handlers may take of the agent's memory, and those for the
// Configurations of one namespace. Most of their devices may not be published: that is
// decided later, and needs the whole list.
const (
	maxListBytes          = 16 << 20
	maxNamespaceListBytes = 8 << 20
	// deviceBytes and entryBytes are what a device, and each of its properties, mounts and
	// files, take in addition to their text.
	deviceBytes = 512
	entryBytes  = 64
)

// listError is the reason why the agent does not accept a list. The endpoint works.
type listError struct{ text string }

func (e *listError) Error() string { return e.text }

// bytesOf returns what a list takes of the memory.
func bytesOf(devices []Device) int {
	bytes := 0
	for _, d := range devices {
		bytes += deviceBytes + len(d.ID) + len(d.Refused) + entryBytes*(len(d.Properties)+len(d.Mounts)+len(d.Files))
		for name, value := range d.Properties {
			bytes += len(name) + len(value)
		}
		for _, mount := range d.Mounts {
			bytes += len(mount.ContainerPath) + len(mount.HostPath)
		}
		for _, file := range d.Files {
			bytes += len(file.ContainerPath) + len(file.HostPath) + len(file.Permissions)
		}
	}
	return bytes
}

// admit returns an error if there is no room for an endpoint's list, which replaces its
// former one. The caller holds mu.
func (s *Supervisor) admit(configuration types.NamespacedName, from registry.Endpoint, bytes int) error {
	namespaces := map[string]int{configuration.Namespace: bytes}
	for name, d := range s.discoveries {
		for endpoint, known := range d.view.sources {
			if name != configuration || endpoint != from {
				namespaces[name.Namespace] += known.bytes
			}
		}
	}
	all := 0
	for _, taken := range namespaces {
		all += taken
	}
	const remedy = "the last list that fitted is kept: restrict discoveryDetails"
	switch own := namespaces[configuration.Namespace]; {
	case own > maxNamespaceListBytes:
		return &listError{fmt.Sprintf(
			"the lists of devices for the Configurations of namespace %s would have %d bytes, the limit is %d, and %s",
			configuration.Namespace, own, maxNamespaceListBytes, remedy,
		)}
	case all > maxListBytes:
		return &listError{fmt.Sprintf("the lists of devices for all Configurations would have %d bytes, the limit is %d, and %s",
			all, maxListBytes, remedy)}
	}
	return nil
}
