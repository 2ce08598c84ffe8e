// Package registry keeps the discovery handlers of this node: their names, their
// addresses, and whether they answer.
//
// Handlers register through a gRPC service on a Unix socket (server.go). Those that
// listen on the network are refused unless the operator permits their addresses or
// requires certificates (network.go). An endpoint is Waiting, Active or Offline
// (state.go, pure); endpoints without a stream are probed (probe.go). An endpoint that
// has been offline for [ForgetAfter] is forgotten until it registers again. The
// endpoints are also kept in a file next to the socket (store.go), so that a
// restarted agent dials them at once instead of waiting until each registers; those on
// the network must register again.
//
// Always: a registration is answered without dialling the handler; subscribers are
// notified of every change. Never: a handler's message makes the agent exit.
package registry
