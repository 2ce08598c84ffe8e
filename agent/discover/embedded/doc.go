// Package embedded runs discovery handlers in the agent's process.
//
// Each is served on a Unix socket in the handlers' directory, and registers with the
// agent like a handler in another process, so the agent knows no second way from a
// device to an Instance. Its socket has a name of its own: a DaemonSet may run the same
// handler on the node, for example while an operator moves from one to the other.
//
// Always: Close returns when all goroutines have ended. Never: the failure of a handler
// makes the agent exit; it is served again with increasing back-off.
package embedded
