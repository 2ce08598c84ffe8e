// Package claims writes owners of slots into Instances and removes them, with a
// JSON Patch that tests the previous owner in the same request.
//
// Read change.go (the patch), then executor.go (the deadline, and the handling of
// lost responses).
//
// A probe is a claim that the API server checks but does not write.
//
// Always: one patch per Instance, all or nothing; a claim changes only free slots, a
// release only slots of this node; a release tests the resourceVersion it was made
// for, so that a delayed one cannot free a slot that was allocated again.
// Never: an update of the whole object, an apply, a refusal based on the cache.
package claims
