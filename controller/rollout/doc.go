// Package rollout limits how many Instances of a group a change of templates makes
// unavailable at once.
//
// A [Gate] knows about an Instance only what its caller reports. An Instance that
// has not been reported counts as unavailable, so after a restart none passes
// before all have been reconciled. The Instances that wait are woken in the order in
// which they began to wait, each as soon as it may pass; a turn that an Instance does
// not use goes to the next.
//
// Always: an Instance that must wait is woken when it may pass. Never: an object, a
// clock.
package rollout
