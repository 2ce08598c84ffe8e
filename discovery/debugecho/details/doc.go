// Package details reads the discoveryDetails of debugEcho. The admission webhook
// uses it as well, so it imports no gRPC: a handler's details are a package of
// their own.
package details
