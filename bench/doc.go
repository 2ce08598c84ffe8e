// Command bench measures Akri's controller against a bare client, in the same run
// and on the same API server, and prints a table:
//
//	bench --instances 100,500 --only converge,restart
//
// It starts its own control plane without nodes, runs the real akri-controller
// against it, and has it apply a ConfigMap, a Service and a Deployment for each of N
// Instances. The bare client does the same work without any of the controller's
// logic. The results are read from the API server's audit log, which records both
// alike and slows neither down.
//
// None of Kubernetes' controllers runs during the measurements. The Deployment
// controller would change statuses, and the garbage collector reads owners that it
// has not seen yet.
//
// Always: a figure has a reference or a limit to compare it with. Never: a test that
// depends on a measurement.
package main
