// Package process starts and reaps child processes for a parent that may be
// PID 1 of a process namespace.
//
// A [Table] is the only one that waits, so orphans that the kernel hands to
// PID 1 and children that somebody watches never compete for an exit status. A
// [Component] is a named long-running child with a log, which can be stopped,
// killed and started again, and which reports when it ends by itself.
//
// Always: a child dies with this process (parent-death signal), leads a session
// of its own, and is signalled only while it is known not to have been reaped.
// Never: a second Wait for the same process anywhere else.
package process
