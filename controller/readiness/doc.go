// Package readiness judges whether an object is ready: a Pod that runs and is
// ready, a Deployment whose replicas are available, a custom resource whose
// conditions are met. It judges by kstatus, as kubectl and Flux do, or by a template's
// own ready-when condition.
//
// Always: the object as the API server returns it is enough. Never: a client, a
// clock.
package readiness
