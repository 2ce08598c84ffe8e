package details

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"akri.sh/akri/discovery/details"
	"akri.sh/akri/internal/text"
)

// Bounds of the details.
const (
	// MaxAddresses bounds the addresses that are probed one by one, such as those of a
	// /20.
	MaxAddresses = 4096
	// MaxInterfaces bounds the interfaces that are named or found. Linux lets a socket
	// join a multicast group on 20.
	MaxInterfaces = 20

	maxTimeoutSeconds  = 60
	maxIntervalSeconds = 3600
	maxMisses          = 100
)

// The values of the key id.
const (
	// ByURL makes the id of a device URL-UUID, as Akri does.
	ByURL = "url"
	// ByUUID makes the id of a device its UUID, which a new IP address does not change.
	ByUUID = "uuid"
	// ByMAC and BySerial are for devices whose UUID changes, too.
	ByMAC    = "mac"
	BySerial = "serial"
)

// The values of the key details.
const (
	// Information adds manufacturer, model, serial number, firmware and hardware.
	Information = "information"
	// Streams adds the URIs of the first profile's stream and snapshot.
	Streams = "streams"
)

// Details are the discoveryDetails of a Configuration.
type Details struct {
	IPAddresses  *details.Filter `json:"ipAddresses"`
	MACAddresses *details.Filter `json:"macAddresses"`
	Scopes       *details.Filter `json:"scopes"`
	UUIDs        *details.Filter `json:"uuids"`
	// DiscoveryTimeoutSeconds is how long answers to a probe are waited for.
	DiscoveryTimeoutSeconds int `json:"discoveryTimeoutSeconds"`
	// IntervalSeconds is the time between two probes.
	IntervalSeconds int `json:"intervalSeconds"`
	// Misses is how many probes in a row a camera may leave without an answer.
	Misses int `json:"misses"`
	// Interfaces are the network interfaces to probe; if empty, the handler chooses.
	Interfaces []string `json:"interfaces"`
	// Addresses are IP addresses and ranges to probe by unicast.
	Addresses []string `json:"addresses"`
	// ID is ByURL, ByUUID, ByMAC or BySerial.
	ID string `json:"id"`
	// Details lists additional properties: Information, Streams.
	Details []string `json:"details"`
	// AllowForeignXAddrs accepts URLs on other hosts than the one that has answered.
	AllowForeignXAddrs bool `json:"allowForeignXAddrs"`
	// InsecureSkipVerify accepts any certificate of a camera.
	InsecureSkipVerify bool `json:"insecureSkipVerify"`

	// Ignored are the mistakes in items of filters that no camera can have, if cameras can pass
	// without them: for a handler, those are none.
	Ignored error `json:"-"`

	prefixes []netip.Prefix
}

// Parse returns the details of a Configuration, with defaults. An error is for its
// author.
func Parse(discoveryDetails string) (*Details, error) {
	d := &Details{DiscoveryTimeoutSeconds: 2, IntervalSeconds: 10, Misses: 3, ID: ByURL}
	checkFilters := func() error {
		return errors.Join(
			d.Scopes.Check("scopes"), d.UUIDs.Check("uuids"),
			d.checkItems("ipAddresses", d.IPAddresses, isAddress, "an IP address or range",
				"write an address such as 10.0.0.5, or a range such as 10.0.0.0/28; host names, ports and * do not count"),
			d.checkItems("macAddresses", d.MACAddresses, isMAC, "a MAC address",
				"write all of its six bytes, such as 02:00:5e:10:00:01"),
		)
	}
	return d, details.Decode(discoveryDetails, d, checkFilters, d.checkNumbers, d.checkWords, d.checkInterfaces, d.parseAddresses)
}

// Validate returns an error if the handler would refuse a Configuration's
// discoveryDetails, or ignore an item of a filter.
func Validate(discoveryDetails string) error {
	d, err := Parse(discoveryDetails)
	return errors.Join(err, d.Ignored)
}

func (d *Details) checkNumbers() error {
	for _, number := range []struct {
		path         string
		value, limit int
	}{
		{"discoveryTimeoutSeconds", d.DiscoveryTimeoutSeconds, maxTimeoutSeconds},
		{"intervalSeconds", d.IntervalSeconds, maxIntervalSeconds},
		{"misses", d.Misses, maxMisses},
	} {
		if number.value < 1 || number.value > number.limit {
			return details.Faultf(number.path, "want 1 to %d, not %d", number.limit, number.value)
		}
	}
	return nil
}

func (d *Details) checkWords() error {
	if err := checkWord("id", d.ID, []string{ByURL, ByUUID, ByMAC, BySerial}); err != nil {
		return err
	}
	for i, word := range d.Details {
		if err := checkWord(fmt.Sprintf("details[%d]", i), word, []string{Information, Streams}); err != nil {
			return err
		}
	}
	return nil
}

func checkWord(path, word string, words []string) error {
	if slices.Contains(words, word) {
		return nil
	}
	fault := details.Faultf(path, "want %s, not %q", strings.Join(words, " or "), word)
	if near := text.Nearest(word, words); near != "" {
		fault = fault.Hintf("did you mean %s?", near)
	}
	return fault
}

// maxInterfaceNameBytes is the kernel's bound (IFNAMSIZ), without the final zero.
const maxInterfaceNameBytes = 15

func (d *Details) checkInterfaces() error {
	if len(d.Interfaces) > MaxInterfaces {
		return details.Faultf("interfaces", "%d names, more than %d", len(d.Interfaces), MaxInterfaces)
	}
	for i, name := range d.Interfaces {
		if name == "" || len(name) > maxInterfaceNameBytes || strings.ContainsAny(name, "/ \t\n") {
			return details.Faultf(fmt.Sprintf("interfaces[%d]", i), "%q is not the name of a network interface", name).
				Hintf("write a name that ip link shows, such as eth1")
		}
	}
	return nil
}

// Timeout is how long answers to a probe are waited for.
func (d *Details) Timeout() time.Duration {
	return time.Duration(d.DiscoveryTimeoutSeconds) * time.Second
}

// Interval is the time between two probes. It is not shorter than Timeout.
func (d *Details) Interval() time.Duration {
	return max(time.Duration(d.IntervalSeconds)*time.Second, d.Timeout())
}

// Wants reports whether the key details lists a word.
func (d *Details) Wants(word string) bool { return slices.Contains(d.Details, word) }
