// Package watch sees the objects that the controller has made, whatever their
// kinds, without knowing them beforehand.
//
// [Informers] holds one informer for each resource that some template names. It
// is started when first asked for and stopped a minute after its last user has
// gone; it sees only objects with our label, and of each it keeps an [Object]:
// what planning and readiness need, not the object itself.
//
// Always: asking never blocks; who asked too early is told when the answer is
// there. A parent is told of its objects' deletion, of changes to our fields and
// of readiness, and of nothing else. Never: a write.
package watch
