// Package discovery is the library for discovery handlers in Go. It consists of one
// interface, [Handler], and one function, [Serve].
//
// A handler finds devices for the agents. Serve listens on a socket, registers the
// handler with the agent, and registers it again when the agent has restarted. The
// handler only implements Discover and does not deal with gRPC.
//
// Always: the protocol is v0 (package discovery/protocol), so a handler works with
// every agent that supports it. Never: an import of the agent, of Kubernetes or of
// its API.
package discovery
