// Package discovery is what one needs to write a discovery handler in Go: one
// interface, [Handler], and one function, [Serve].
//
// A handler looks for devices on behalf of the agents. Serve gives it a socket,
// tells the agent of it, and tells it again when the agent has restarted; the
// handler sees calls of Discover and nothing of gRPC.
//
// Always: only the v0 protocol (package discovery/protocol) is spoken, so a handler
// works with every agent that knows it. Never: this package imports nothing of
// the agent, and needs neither Kubernetes nor its API.
package discovery
