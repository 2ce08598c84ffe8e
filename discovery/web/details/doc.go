// Package details parses the discoveryDetails of the handler http. The admission webhook
// and kubectl akri use it too, so it does not import gRPC.
package details
