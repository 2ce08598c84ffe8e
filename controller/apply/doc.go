// Package apply sends the requests of a plan. A step that applies is one request, a
// server-side apply under one field manager; if other clients have replaced list
// entries, a read and a patch of the managed fields come before it. A step that
// deletes reads the object and deletes it in that version.
//
// Always: an existing object that the claim does not own is left untouched; an
// error that changes what happens next is a problem.Error, [ErrChanged] or
// [ErrGone]. Never: a decision about what should exist.
package apply
