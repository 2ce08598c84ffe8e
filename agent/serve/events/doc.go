// Package events emits Kubernetes Events about Instances and Configurations.
//
// Read aggregate.go (when an Event is written), then recorder.go.
//
// Always: at most one request per object, subject and reason in [Interval], and a few
// per second in all; an Event counts the occurrences since the first; the log has what
// was emitted.
// Never: a wait for the API server in the caller; a retry.
package events
