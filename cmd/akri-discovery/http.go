package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"

	"github.com/spf13/pflag"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/embeddable"
	"akri.sh/akri/discovery/monitor"
	"akri.sh/akri/discovery/web"
)

const httpManual = `http runs the handler http, which finds devices that are web servers. A device exists
while it responds as expected.

    discoveryHandler:
      name: http
      discoveryDetails: |
        urls: [http://10.0.0.5/status, http://10.0.0.6/status]
        expect: {status: [200], path: state, values: [ready]}
        properties: {MODEL: info.model}

Instead of urls, an index can list the devices, as lines with one URL each or as JSON:

        index:
          url: https://inventory.example/devices
          items: data.devices       # path of the list; default: the response
          address: url              # path of a device's URL in an item
          id: serial                # path of its id; default: its URL
          properties: {ROOM: room}  # from the item

A path has the syntax of gjson (github.com/tidwall/gjson/blob/master/SYNTAX.md), without
queries, wildcards and modifiers: info.ports.0.name is the name of the first port, and \.
is a period in a key.

Further keys: intervalSeconds (10), timeoutSeconds (5), misses (3: how many requests in
a row must fail before a device is gone), and tls with caProperty, certProperty,
keyProperty and insecureSkipVerify.

discoveryProperties: username and password, or token, are sent to the hosts that the
Configuration names, never to others that an index lists. Redirects are not followed.

Properties: HTTP_URL, AKRI_HTTP_DEVICE_ENDPOINT (the same), and those above. The id is
the URL, unless index.id is set.

Authors of Configurations choose the URLs: restrict the networks that the handler may
connect to with the flags below.`

func httpCommand(func(string) string) command {
	var allow, deny []string
	return command{
		use: "http", short: "Find web servers, from a list or an index", manual: httpManual, onNetwork: true,
		flags: func(flags *pflag.FlagSet) {
			flags.StringSliceVar(&allow, "allow-networks", nil, "connect only to these networks, such as 10.0.0.0/8; default: all")
			flags.StringSliceVar(&deny, "deny-networks", web.DefaultDeny, "never connect to these networks")
		},
		handler: func() (embeddable.Handler, error) {
			allowed, err := prefixes("allow-networks", allow)
			denied, err2 := prefixes("deny-networks", deny)
			return embeddable.Handler{Name: web.Name, New: func(metrics *monitor.Metrics, _ *slog.Logger) discovery.Handler {
				return web.Handler{Networks: web.Networks{Allow: allowed, Deny: denied}, Metrics: metrics}
			}}, errors.Join(err, err2)
		},
	}
}

// prefixes parses the networks in a flag.
func prefixes(flag string, texts []string) ([]netip.Prefix, error) {
	var all []netip.Prefix
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("--%s: %q is not a network: write one such as 10.0.0.0/8", flag, text)
		}
		all = append(all, prefix.Masked())
	}
	return all, nil
}
