// Package fight notices that somebody else keeps undoing what the controller
// repairs, and slows the repairs down.
//
// A [Detector] is told of repairs and of the time; it never looks at objects and
// has no clock.
package fight
