// Package rollout limits how many Instances of a group a change of templates makes
// unavailable at once.
//
// A [Gate] knows about an Instance only what its caller reports. An Instance that
// has not been reported counts as unavailable, so after a restart none passes
// before all have been reconciled.
//
// Always: an Instance that must wait is woken when it may pass. Never: an object, a
// clock.
package rollout
