// Package builtin lists the handlers that come with Akri, for the admission webhook and
// kubectl akri, which check discoveryDetails as the handlers do. It imports only the
// handlers' packages of details.
package builtin

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	echo "akri.sh/akri/discovery/debugecho/details"
	mdns "akri.sh/akri/discovery/mdns/details"
	mqtt "akri.sh/akri/discovery/mqtt/details"
	onvif "akri.sh/akri/discovery/onvif/details"
	opcua "akri.sh/akri/discovery/opcua/details"
	udev "akri.sh/akri/discovery/udev/details"
	web "akri.sh/akri/discovery/web/details"
)

// Validators list the handlers, by their names in Configurations, with functions that return
// an error if the handler would refuse discoveryDetails. Their commands list themselves.
var Validators = map[string]func(discoveryDetails string) error{
	"debugEcho": refusal(echo.Parse),
	"http":      refusal(web.Parse),
	"mdns":      refusal(mdns.Parse),
	"mqtt":      refusal(mqtt.Parse),
	"onvif":     onvif.Validate,
	"opcua":     refusal(opcua.Parse),
	"udev":      refusal(udev.Parse),
}

// refusal returns a function that returns only the error of a parser.
func refusal[D any](parse func(discoveryDetails string) (D, error)) func(discoveryDetails string) error {
	return func(discoveryDetails string) error {
		_, err := parse(discoveryDetails)
		return err
	}
}

// Without returns the Validators except those of some names. A cluster may have another
// handler of that name, which understands other details.
func Without(names []string) (map[string]func(discoveryDetails string) error, error) {
	rest := maps.Clone(Validators)
	for _, name := range names {
		if _, found := Validators[name]; !found {
			return nil, fmt.Errorf("%q: not a built-in handler: use %s", name, strings.Join(slices.Sorted(maps.Keys(Validators)), ", "))
		}
		delete(rest, name)
	}
	return rest, nil
}
