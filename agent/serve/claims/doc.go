// Package claims writes owners of slots into Instances and removes them, with a
// JSON Patch that tests the previous owner in the same request.
//
// Read change.go (what is sent), then executor.go (the deadline, and what happens
// when the API server does not answer).
//
// Always: one patch per Instance, all or nothing; a claim replaces only a free
// slot, a release only this node's ownership; a release tests the resourceVersion
// it was made for, so that a delayed one cannot free a slot that was given again.
// Never: an update of the whole object, an apply, a write based on a cached
// refusal.
package claims
