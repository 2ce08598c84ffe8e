// Package apply sends the requests of a plan: each step is one request, by
// server-side apply under one field manager or by a delete that names the UID.
//
// Always: an existing object that the claim does not own is left untouched; an
// error that changes what happens next is a problem.Error, or [ErrChanged]. Never: a
// decision about what should exist, a retry.
package apply
