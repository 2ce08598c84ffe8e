// Package apply carries out the steps of a plan: one request each, by
// server-side apply under one field manager, or by a delete that names the UID.
//
// Always: an object that exists and is not ours is never touched; an answer that
// changes what happens next is one of the errors in errors.go. Never: a decision
// about what should exist, a retry.
package apply
