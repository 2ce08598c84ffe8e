// Package claims writes owners of slots into Instances and takes them out again,
// by the one primitive that cannot overwrite somebody else's word: a JSON Patch
// that tests the old value in the same request.
//
// Read patch.go (what is sent), then executor.go (deadline, and what is done when
// nobody answers).
//
// Always: one patch per Instance, all or nothing; an owner is written only over
// free, free only over the owner; a release names the version of the Instance it
// was read at, so that one which arrives late frees nothing given again since.
// Never: an update of the whole object, an apply, a cached read.
package claims
