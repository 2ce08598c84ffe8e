// Package migration works out how a cluster moves from the original Akri to this one:
// what happens to each object, what has to be settled before, the commands in their
// order, and what may be removed afterwards.
//
// Always: the same facts give the same result, and what could not be read is named in
// it. Never: a cluster, a clock or the contents of a Secret of a user.
package migration
