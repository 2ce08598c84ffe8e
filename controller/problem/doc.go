// Package problem defines the errors that keep a parent's objects from their desired
// state, with the texts for conditions, Events and denials, and explains why the API
// server refuses a request: who does, and how to resolve it. Other packages create an
// [Error]; this package imports none of them.
//
// Always: the reason of an error is decided where the error is created, but for an API
// server that did not answer, which [At] finds in any error. One table of refusals, for the
// controller and the webhook, that quotes nothing of an object but the name of what it
// refers to. Never: a client, a request.
package problem
