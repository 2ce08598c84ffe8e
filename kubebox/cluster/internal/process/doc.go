// Package process starts and reaps child processes for a parent that may be PID 1 of a
// PID namespace.
//
// Only a [Table] waits for processes, so orphans that the kernel reparents to PID 1 and
// the children of components never compete for an exit status. A [Component] is a
// named long-running child with a log. It can be stopped, killed and started again, and
// it reports when it exits by itself.
//
// Always: a child is killed when this process exits (parent-death signal), leads its own
// session, and is signalled only while it is known not to have been reaped.
// Never: a wait for the same process anywhere else.
package process
