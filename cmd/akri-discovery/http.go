package main

import (
	"fmt"
	"net/netip"

	"github.com/spf13/cobra"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/monitor"
	"akri.sh/akri/discovery/web"
)

func newHTTP(environment func(string) string) *cobra.Command {
	var serve serveFlags
	var allow, deny []string
	cmd := &cobra.Command{
		Use:   "http",
		Short: "Find web servers, from a list or an index",
		Long: `http runs the handler http, which finds devices that are web servers. A device exists
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
connect to with the flags below.`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().StringSliceVar(&allow, "allow-networks", nil, "connect only to these networks, such as 10.0.0.0/8; default: all")
	cmd.Flags().StringSliceVar(&deny, "deny-networks", web.DefaultDeny, "never connect to these networks")
	serve.add(cmd, environment)
	serve.addShared(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var networks web.Networks
		var err error
		if networks.Allow, err = prefixes("allow-networks", allow); err != nil {
			return err
		}
		if networks.Deny, err = prefixes("deny-networks", deny); err != nil {
			return err
		}
		return serve.serve(cmd, web.Name, func(metrics *monitor.Metrics) discovery.Handler {
			return web.Handler{Networks: networks, Metrics: metrics}
		})
	}
	return cmd
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
