// Package details parses the discoveryDetails of the handler mdns. The admission webhook
// uses it too, so it does not import gRPC or the network.
package details
