// Package slots decides which slots of devices this node owns.
//
// A [Machine] is one node's view of the field deviceUsage of its Instances. It
// receives Events (what this node observed) and returns Commands (what this node
// should do). Its caller carries them out and reports their results as further
// events, in any order or never. Read machine.go, allocate.go, record.go,
// release.go, advertise.go, then testdata.
//
// Always: the invariants of invariants_test.go. A slot is given to a container only
// while the record in the API server names this node, or, for a device that no
// other node can reach, will name it; a slot is released only on evidence that is
// later than the last call naming it.
//
// Never: a clock, a goroutine, a client, a lock. Time enters through [Ticked], as
// the time since the caller started. A Machine is not safe for concurrent use.
package slots
