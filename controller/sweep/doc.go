// Package sweep deletes strays at long intervals: objects that the controller
// applied and that neither garbage collection nor an inventory covers any more. They are
// cluster-scoped or in another namespace than their parent, which was deleted without its
// finalizer.
//
// Always: an object is swept only if the controller applied it with the UID of its parent
// in a label, no other client has changed the labels that name its parent, its deletion
// policy is not orphan, and its Configuration or Instance does not exist.
//
// Never: an object with an owner, which is left to garbage collection; one of its parent's
// namespace without an owner, which looks the same whether its parent was deleted with
// --cascade=orphan or another client has removed the owner reference.
package sweep
