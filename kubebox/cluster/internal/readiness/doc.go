// Package readiness waits until the API server, nodes and kubelets are ready. It reads
// a few fields of the Kubernetes API with net/http, without a client library.
package readiness
