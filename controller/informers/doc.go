// Package informers watches the objects that the controller has applied, whatever
// their kinds, without knowing the kinds beforehand.
//
// [Informers] holds one informer for each resource that a template names: client-go's
// reflector, which writes into a store of our own. It starts on first use and stops a minute
// or two after its last user is gone. It watches only objects with the controller's label,
// and keeps an [Object] of each that is the controller's: what planning and readiness need,
// never the content. Anyone can put the label on an object; what has neither a parent as its
// controller nor the controller's entry in its managed fields is ignored.
//
// The answer to an apply is stored as if the watch had delivered it, so that the next plan
// does not depend on how fast the watch is. An object that a template's ready-when condition
// judges keeps the verdict. If the condition changes, the object is read once for its new
// verdict ([Informers.Judge]).
//
// A watch that cannot be opened any more is reported ([State]) after a short interruption is
// ruled out. Until it works again the resource counts as not synced, so nothing is planned
// from stale knowledge.
//
// Always: [Informers.Ensure] never blocks; a parent that calls it before the first sync is
// requeued once it has happened. A parent is requeued when one of its objects is
// deleted, or one that it awaits ([Informers.Await]), when a field managed by the
// controller changes, and when the object's readiness changes by the parent's own
// standard; not otherwise. The content of an object can neither crash the process nor stop
// the watch. Never: a write.
package informers
