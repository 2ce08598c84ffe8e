// Command bench measures Akri's controller against a bare client, in the same run
// and on the same API server, and prints a table:
//
//	bench --instances 100,500 --only converge,restart
//
// It starts a control plane of its own without nodes, runs the real
// akri-controller against it, and has it apply a ConfigMap, a Service and a
// Deployment for each of N Instances. The bare client does the same work without
// any of the controller's logic. The results are read from the API server's audit
// log, which records both alike and costs neither of them anything.
//
// No controller of Kubernetes runs during the measurements: neither the Deployment
// controller, so that no status changes behind the measured work, nor the garbage
// collector, which reads owners that it has not seen yet.
//
// Always: a figure comes with its reference or its bar. Never: a verdict in a test.
package main
