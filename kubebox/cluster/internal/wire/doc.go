// Package wire implements the control protocol between a cluster's supervisor or nodes and the
// programs that use the cluster: one request and one response per connection on a Unix
// socket, each a JSON message in one packet.
//
// Files are passed along with messages. A command that runs inside a node writes
// directly to the caller's descriptors, and a socket created inside a network namespace
// is used outside like a local one. No stream is copied, multiplexed or framed.
//
// Always: a caller that disconnects cancels its request's context on the server.
// Never: a message of more than 128 KiB.
package wire
