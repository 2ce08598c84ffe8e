// Package problem defines the errors that keep a parent's objects from their desired
// state, with the texts for conditions, Events and denials. Other packages create an
// [Error]; this package imports none of them.
//
// Always: the reason of an error is decided where the error is created, but for an API
// server that did not answer, which [At] finds in any error. Never: a client, a
// request.
package problem
