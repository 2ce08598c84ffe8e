// Package details parses the discoveryDetails of the handler onvif. The admission webhook
// and kubectl akri use it too, so it is a separate package and does not import gRPC.
//
// Always: the details that Akri's chart renders are valid, and mean the same. Never: an
// address that no camera can have.
package details
