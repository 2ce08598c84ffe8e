// Package problem holds the errors that keep a parent's objects from being as
// rendered, with what a condition, an Event or a denial needs to say about them.
// Packages that find such an error make an [Error]; this package knows none of
// them.
//
// Always: the reason of an error is decided where the error is made. Never: a
// client, a request.
package problem
