package main

import (
	"github.com/spf13/pflag"

	"akri.sh/akri/discovery/embeddable"
)

const opcuaManual = `opcua runs the handler opcua, which finds OPC UA servers. All nodes see the same
servers, so their devices are shared.

    discoveryHandler:
      name: opcua
      discoveryDetails: |
        opcuaDiscoveryMethod:
          standard:                 # FindServers, of servers and discovery servers
            discoveryUrls:          # default: opc.tcp://localhost:4840/
            - opc.tcp://10.1.2.3:4840/
        applicationNames:           # these three: Include or Exclude exact values
          action: Exclude
          items: []
        applicationUris: {action: Include, items: ["urn:plant:oven"]}
        productUris: {action: Exclude, items: []}
        applicationTypes: [Server, ClientAndServer]    # the default
        id: url                     # or applicationUri, if those are unique
        intervalSeconds: 10         # between polls
        misses: 3                   # polls in a row until a server is gone
        allowHosts: []              # see below

opcuaDiscoveryMethod has one or more of these:

    standard: {discoveryUrls: [...]}    # FindServers
    network: {discoveryUrls: [...]}     # FindServersOnNetwork, of an LDS-ME
    mdns: {}                            # _opcua-tcp._tcp
    scan:                               # only with --scan-networks
      cidrs: [10.1.2.0/24]
      ports: [4840]
      connectionsPerSecond: 50
      intervalSeconds: 300

The handler connects to a server that a discovery server refers to only if it is on the
discovery server's own host, or if allowHosts has its address, its name, a CIDR, or a
name such as *.plant.example.

The id of a device is the URL of the server. A server that answers at a URL in
discoveryUrls keeps its host and port. In the URL of one that a discovery server lists,
a host that does not exist, or the loopback address of a discovery server on another
machine, is replaced by the host of the discovery server.

The properties are OPCUA_DISCOVERY_URL and, if known, OPCUA_APPLICATION_NAME,
OPCUA_APPLICATION_URI, OPCUA_PRODUCT_URI and OPCUA_ENDPOINTS, which has security policies
and modes, such as Basic256Sha256/SignAndEncrypt,None/None.

The environment variables in parentheses are the defaults of the flags.`

func opcuaCommand(func(string) string) command {
	var networks []string
	return command{
		use: "opcua", short: "Find OPC UA servers", manual: opcuaManual, onNetwork: true,
		flags: func(flags *pflag.FlagSet) {
			flags.StringSliceVar(&networks, "scan-networks", nil,
				"networks, such as 10.1.0.0/16, that Configurations may scan; none by default")
		},
		handler: func() (embeddable.Handler, error) {
			scan, err := prefixes("scan-networks", networks)
			return embeddable.OPCUA(scan), err
		},
	}
}
