// Package advice finds what Kubernetes accepts in a rendered object, but what may not work
// as its author expects: an update that waits for ever, a Job that runs again and again, a
// Pod that gets no device. The webhook and kubectl akri lint warn of it.
//
// Always: the object, its template and the values are enough.
// Never: a client, a clock.
package advice
