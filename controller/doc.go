// Package controller keeps the objects true that Configurations ask for.
//
// A reconcile of an Instance, or of a Configuration's group, reads from caches,
// renders its templates, plans (package plan), carries the plan out (package
// apply) and writes the parent's status once if it says something new. Read
// instance.go first, then objects.go.
//
// Always: one failing object does not stop its siblings, one failing Instance
// not another; a pass in which nothing has changed sends nothing; deletion needs
// no template, since objects are owned by their parent. Never: a request for an
// object that is as it should be, a second field manager, a type of any kind but
// our own two.
package controller
