// Package events emits Kubernetes Events about Instances and Configurations.
//
// Read aggregate.go (when an Event is written), then recorder.go.
//
// Always: at most one Event per object, subject and reason in [Interval], and a few
// requests per second in all; an Event counts the occurrences since the first; the log has
// each Event before it is written; a write that fails because the API server cannot be
// reached is repeated, with increasing back-off.
// Never: a wait for the API server in the caller; a repeated write that the API server
// refused.
package events
