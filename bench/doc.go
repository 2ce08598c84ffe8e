// Command bench measures Akri's controller and an agent against a bare client, in the
// same run and on the same kind of API server, and prints a table:
//
//	bench --only converge,restart --instances 300
//
// Each measurement has a new control plane without nodes, with all controllers of
// kube-controller-manager, and runs the programs as they are shipped. The bare client
// does the same work without any of Akri's logic. The API server's audit log records the
// requests of both alike and slows neither down.
//
// Read plane.go, audit.go and program.go (what measures), workload.go and bare.go (what
// is done), then settle.go, restart.go, churn.go, repair.go, agent.go, messages.go and
// slots.go (one measurement each), rest.go and report.go.
//
// Always: a figure has a reference or a limit to compare it with. Never: a test that
// depends on a measurement.
package main
