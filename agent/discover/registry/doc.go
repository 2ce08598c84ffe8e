// Package registry knows the discovery handlers of this node: which there are,
// where they are reached, and whether they answer.
//
// Handlers register through a gRPC service on a unix socket (server.go). An
// endpoint is Waiting, Active or Offline (state.go, pure): one that has been
// offline for [ForgetAfter] is forgotten until it registers again. The known
// endpoints are kept in a file beside the socket (store.go), so that an agent
// that restarts dials them at once instead of waiting for each to notice.
//
// Always: a registration is answered without dialling the handler; whoever
// subscribes hears of every change. Never: a handler's message ends the agent.
package registry
