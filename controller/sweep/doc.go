// Package sweep finds, slowly, what the controller made and neither garbage
// collection nor an inventory knows of any more: objects whose owner reference
// somebody took off, and objects in other namespaces whose parent was deleted
// without its finalizer.
//
// An object is swept only if it carries our labels, the controller applied it, it
// is not to be orphaned, and the Configuration or Instance that it was made for
// does not exist. Never: an object with an owner; that is garbage collection's.
package sweep
