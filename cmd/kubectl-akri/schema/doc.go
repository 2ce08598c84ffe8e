// Package schema validates Configurations and Instances against their
// CustomResourceDefinitions, and rendered objects of kinds built into Kubernetes
// against their Go types, without a cluster. It reports what the API server would
// reject, and unknown fields, which the API server drops without an error.
//
// It is a validator of its own, and not k8s.io/apiextensions-apiserver, because its
// messages name the place and the remedy. The price is that it can drift from the API
// server. It covers the keywords that the two definitions use and nothing else, and
// it evaluates their CEL rules without type information and without the functions
// that Kubernetes adds to CEL. Tests detect drift: an unknown keyword fails, every
// CEL rule must compile here, and the verdicts are compared with those of the OpenAPI
// validator and of the strict decoder of Kubernetes. Rules about changes (oldSelf)
// are left to the API server.
//
// Always: all problems are reported, each with path, cause and remedy; a rule that
// cannot be evaluated is a problem too. Never: a client, a file, a clock.
package schema
