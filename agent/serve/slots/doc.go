// Package slots decides which slots of which devices this node holds.
//
// A [Machine] is one node's view of the field deviceUsage of its Instances. It
// is fed Events (something this node noticed) and answers with Commands
// (something this node should do); its owner carries them out and reports back
// by further events, in any order or never. Read machine.go, allocate.go,
// record.go, release.go, advertise.go, then testdata.
//
// Always: the invariants of invariants.go. A slot is given to a container only
// while the record in the API server names this node, or is about to for a
// device no other node can reach; a slot is released only on evidence that is
// younger than the last call naming it.
//
// Never: a clock, a goroutine, a client, a lock. Time enters by [Ticked], as the
// time since the owner's start. A Machine is not for concurrent use.
package slots
