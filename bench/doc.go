// Command bench measures Akri's controller and agents against a bare client, in the
// same run and on the same API server, and prints a table:
//
//	bench --instances 100,500 --only converge,restart
//
// It starts its own control plane without nodes, runs the real akri-controller
// against it, and has it apply a ConfigMap, a Service and a Deployment for each of N
// Instances. The bare client does the same work without any of the controller's
// logic. The results are read from the API server's audit log, which records both
// alike and slows neither down.
//
// Without --controllers, none of Kubernetes' controllers runs during the measurements.
// With it, all controllers of kube-controller-manager do: the Deployment controller
// changes statuses, and the garbage collector reads owners that it has not seen yet.
// Each measurement then begins once they have finished with what was before.
//
// Of the agent, it measures the shipped program with a stub kubelet (agent.go), and
// many agents in a few processes, on nodes that do not exist (fleet.go).
//
// Always: a figure has a reference or a limit to compare it with. Never: a test that
// depends on a measurement.
package main
