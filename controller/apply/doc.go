// Package apply sends the requests of a plan: each step is one request, a
// server-side apply under one field manager or a delete with the UID as precondition.
//
// Always: an existing object that the claim does not own is left untouched; an
// error that changes what happens next is a problem.Error, or [ErrChanged]. Never: a
// decision about what should exist, a retry.
package apply
