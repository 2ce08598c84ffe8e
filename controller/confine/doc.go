// Package confine decides what may be rendered at all, whatever a template's author
// and the controller are allowed to do.
//
// Always, unless the operator's [Policy] says otherwise: an object stays in the
// namespace of its Configuration, and kinds that would give their author power over
// Akri or the cluster are refused. Never: a client; the answer depends only on the
// object and the policy.
package confine
