// Package sweep deletes strays at long intervals: objects that the controller
// applied and that neither garbage collection nor an inventory covers any more. Their
// owner reference was removed, or they are in another namespace and their parent was
// deleted without its finalizer.
//
// Always: an object is swept only if the controller applied it, no other client has
// changed the labels that name its parent, its deletion policy is not orphan, and its
// Configuration or Instance does not exist. Never: an object with an owner, which is left to garbage collection.
package sweep
