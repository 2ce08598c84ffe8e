package udev

import (
	"fmt"
	"regexp"
	"strings"
)

// pciPattern finds the last PCI device in a path.
var pciPattern = regexp.MustCompile(`.*/([0-9a-fA-F]+:[0-9a-fA-F]+:[0-9a-fA-F]+\.[0-9a-fA-F]+)(?:/|$)`)

// usbAddress returns BUS:DEVICE for a file such as /dev/bus/usb/001/010: "1:10".
func usbAddress(node string) (address string, ok bool) {
	var bus, device uint32
	count, _ := fmt.Sscanf(node, "/dev/bus/usb/%d/%d", &bus, &device) // an error is that there is none
	return fmt.Sprintf("%d:%d", bus, device), count == 2
}

// pciAddress returns the address of the PCI device that a path leads through last. A
// device on a USB bus is not a PCI device.
func pciAddress(devPath string) (address string, ok bool) {
	parts := pciPattern.FindStringSubmatch(devPath)
	if parts == nil || strings.Contains(devPath, "/usb") {
		return "", false
	}
	return parts[1], true
}

// resourceSuffix turns the name of an extended resource into the end of the name of a
// variable, as KubeVirt expects it.
func resourceSuffix(resource string) string {
	return strings.ToUpper(strings.NewReplacer(".", "_", "/", "_").Replace(resource))
}
