// Package details parses the discoveryDetails of debugEcho. The admission webhook
// uses it too, so it is a package of its own and does not import gRPC.
package details
