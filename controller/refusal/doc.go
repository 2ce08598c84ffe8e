// Package refusal says what an answer of the API server means that refuses a request
// about an object: who refuses it, by which reason of api/v0 it is reported, and what
// mends it.
//
// Always: one table, for the controller and the webhook. What is taken from an answer
// quotes nothing of the object but the name of what it refers to. Never: a client, a
// request.
package refusal
