// Package refusal explains why the API server refuses a request about an object: who
// refuses it, the condition reason under which it is reported, and how to resolve it.
//
// Always: one table, for the controller and the webhook. What is taken from an answer
// quotes nothing of the object but the name of what it refers to. Never: a client, a
// request.
package refusal
