// Package rollout lets a change of templates reach a group's Instances in turn, so
// that no more of them than allowed are unavailable at once.
//
// A [Gate] knows of an Instance only what it is told. An Instance of which it has
// not been told counts as unavailable, so after a restart nobody passes before all
// have been looked at. It never looks at objects, and never asks for the time.
package rollout
