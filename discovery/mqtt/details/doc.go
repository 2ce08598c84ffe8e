// Package details parses the discoveryDetails of the handler mqtt. The admission webhook
// and kubectl akri use it too, so it is a separate package and does not import gRPC.
//
// Always: what Parse accepts, the handler can use; mistakes name their place and the
// remedy. Never: a user name or a password in details.
package details
