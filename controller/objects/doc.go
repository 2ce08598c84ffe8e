// Package objects reads objects from the API server that any user may have written.
//
// An object of a megabyte takes some 20 MiB once it is decoded, and each watch and each
// worker may get one at the same time. Everything that decodes whole objects therefore
// does it here: texts above a bound take turns.
//
// Always: of all large objects, at most one is decoded at a time in the process. Small
// ones never wait. Never: a turn lasts during a request.
package objects
