// Package details parses the discoveryDetails of the handler opcua. The admission webhook
// uses it too, so it is a separate package and does not import gRPC.
package details
