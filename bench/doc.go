// Package bench measures Akri's controller beside a bare client, in the same run
// and on the same API server.
//
// [run] starts a control plane of its own, without nodes, runs the real
// akri-controller beside it, and has it make a ConfigMap, a Service and a
// Deployment for each of N Instances. The bare client does the same work by
// hand. What happened is read from the API server's audit log, which sees both
// with the same eyes and costs neither of them anything.
//
// Of the controller manager nothing runs while something is timed: neither the
// controller of Deployments, so that no status changes behind the work that is
// measured, nor the garbage collector, which asks for owners it has not seen
// yet. The garbage collector runs while the controller is killed.
//
// Never: a figure without its reference or its bar, a verdict in a test.
package main
