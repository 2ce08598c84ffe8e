// Package wire is the control protocol between a cluster's supervisors and the
// programs that use the cluster: one request and one response per connection
// on a Unix socket, each a JSON message in one packet.
//
// Files travel beside the message. That is the whole trick of it: a command
// started inside a node writes straight to the caller's own descriptors, and a
// socket made inside a network namespace is used outside as if it were local.
// No stream is copied, multiplexed or framed.
//
// A caller that goes away takes its request back: the server's context for that
// request is cancelled.
package wire
