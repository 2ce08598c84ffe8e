// Package debug shows what an agent knows: its handlers, the Configurations it serves,
// its slots, violated invariants and latest errors. kubectl akri nodes reads it through
// the API server's port-forward.
//
// The endpoint is not authenticated, so it listens on a loopback address only, which
// is the Pod's own: only those who may forward ports to the Pod can read it. State is
// its format. Fields are added, but neither removed nor given another meaning.
//
// Always: the state is collected when it is requested. Until then it costs nothing but
// the memory of the latest errors, which is bounded.
//
// Never: a property of a device, or the content of a Secret or ConfigMap. The errors
// are those in the agent's log.
package debug
