// Package protocol is the gRPC protocol between the agent of a node and its
// discovery handlers. It is generated from discovery.proto, except for the file
// name of the agent's socket.
//
// Always: the wire format is the one of upstream Akri, whose handlers work
// unchanged. Its proto package is therefore still called v0.
//
// Never: a field or a service that upstream Akri does not have.
package protocol
