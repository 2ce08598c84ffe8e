// Package controller reconciles Configurations and Instances: it creates, repairs
// and removes the objects that Configurations specify.
//
// A reconcile of an Instance, or of a Configuration's group, reads from caches,
// renders the templates, converges the objects (package converge) and writes the
// parent's status once if it has changed. parent.go has what both do alike, memory.go what is
// remembered about a parent between two passes. Read parent.go first, then instance.go and
// the table of outcomes in package converge.
//
// Always: a failing object does not stop its siblings, nor a failing Instance
// another; a pass that finds nothing changed sends no request; deletion needs no
// template, because objects are owned by their parent. Never: a request for an
// object that is as rendered, a second field manager, a Go type of a kind other
// than the two of api/v0.
package controller
