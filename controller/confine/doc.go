// Package confine decides which objects may be rendered, regardless of the
// permissions of a template's author and of the controller.
//
// Always, unless the operator's [Policy] says otherwise: an object stays in the
// namespace of its Configuration, and kinds that would give their author power over
// Akri or the cluster are refused. Never: a client; the answer depends only on the
// object and the policy.
package confine
