// Package details parses the discoveryDetails of debugEcho. The admission webhook
// uses it too, so it is a separate package and does not import gRPC.
package details
