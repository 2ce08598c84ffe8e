package main

import (
	"log/slog"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/embeddable"
	"akri.sh/akri/discovery/mdns"
	"akri.sh/akri/discovery/mdns/browse"
	"akri.sh/akri/discovery/monitor"
)

const mdnsManual = `mdns runs the handler mdns. It finds services that announce themselves in the
node's networks by Multicast DNS and DNS-SD (also called Bonjour or Zeroconf), such
as printers, cameras, gateways and OPC UA servers. It must run in the host network,
because multicast packets do not reach the network of a Pod.

    discoveryHandler:
      name: mdns
      discoveryDetails: |
        services: ["_http._tcp", "_printer._sub._ipp._tcp"]   # required; ["*"] finds all types
        domain: local                                         # default
        instances: {action: Include, items: ["Camera *"]}     # names of services
        hosts: {action: Exclude, items: ["test-*"]}           # names of hosts
        txt:                    # all must match
          model: "X2*"          # the value of a key
          "!demo": ""           # the key must not exist
        interfaces: ["eth*"]    # default: those with a routable address

In patterns, * matches any characters and ? matches one. The case matters only in
values of txt.

A device's id is the full name of the service in lower case, such as
"camera 1._http._tcp.local". Its properties are:

    MDNS_SERVICE      type, such as _http._tcp
    MDNS_INSTANCE     name, such as Camera 1
    MDNS_HOST         host, such as camera-1.local
    MDNS_PORT         port
    MDNS_ADDRESS      an address of the host
    MDNS_ADDRESSES    all of them, separated by commas
    MDNS_URL          URL, for types that have one
    MDNS_TXT_KEY      value of the TXT record's key, for each key

A device disappears when it says goodbye, or when its records have expired and
further questions remain unanswered: about 150 s after it was switched off.

The environment variables in parentheses are the defaults of the flags.`

func mdnsCommand(func(string) string) command {
	return command{
		use: "mdns", short: "Find services that announce themselves by mDNS and DNS-SD", manual: mdnsManual, onNetwork: true,
		handler: func() (embeddable.Handler, error) {
			return embeddable.Handler{Name: mdns.Name, New: func(metrics *monitor.Metrics, _ *slog.Logger) discovery.Handler {
				return mdns.New(browse.New(browse.Options{Failed: metrics.Failed}))
			}}, nil
		},
	}
}
