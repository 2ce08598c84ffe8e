// Package advice finds what Kubernetes accepts in a rendered object, but what does not
// work as its author expects: an update that waits for ever, a Job that runs again and
// again. The webhook and kubectl akri lint warn of it.
//
// Always: the object, its template and the values are enough, and a warning is certain.
// Never: a client, a clock.
package advice
