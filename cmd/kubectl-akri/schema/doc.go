// Package schema validates Configurations and Instances as the API server does, and
// rendered objects of kinds built into Kubernetes as its decoder does, without a
// cluster. It also reports unknown fields, which the API server drops without an error.
//
// What is valid is decided by k8s.io/apiextensions-apiserver with the two
// CustomResourceDefinitions, and by sigs.k8s.io/json with the Go types of Kubernetes.
// This package finds the place in the file, and says what to write instead. It differs
// from the API server in three points: an object needs a name even if it has a
// generateName, Instances that people write for a test may lack fields that agents set,
// and CEL rules are evaluated even if another field is invalid, so that all mistakes are
// reported at once. Rules about changes (oldSelf) need a cluster.
//
// Always: all mistakes are reported, each with path, cause and remedy; a rule that
// cannot be evaluated is a mistake too. Never: a client, a file, a clock.
package schema
