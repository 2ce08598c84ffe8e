// Package events emits Kubernetes Events about Instances and Configurations.
//
// Always: at most one write per object, subject and reason in ten minutes, and a few
// requests per second in all; an Event counts the occurrences since the first that this
// agent has seen; the log has each Event before it is written; a write that fails because
// the API server cannot be reached is repeated, with increasing back-off.
// Never: a wait for the API server in the caller; a repeated write that the API server
// refused.
package events
