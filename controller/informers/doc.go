// Package informers watches the objects that the controller has applied, whatever
// their kinds, without knowing the kinds beforehand.
//
// [Informers] holds one informer for each resource that a template names. It
// starts on first use and stops a minute after its last user is gone. It watches
// only objects with the controller's label, and keeps an [Object] of each: what
// planning and readiness need. The content is kept only while a ready-when
// condition judges objects of the resource.
//
// Always: asking never blocks; a parent that asks before the first sync is
// requeued once it has happened. A parent is requeued when one of its objects is
// deleted, when a field managed by the controller changes, and when the object's
// readiness changes by the parent's own standard; not otherwise. Never: a write.
package informers
