// Package advice finds what Kubernetes accepts in rendered objects, but what may not work
// as their author expects: an update that waits for ever, a Job that runs again and again, a
// Pod that gets no device, a Service that leads to the Pods of another device. The webhook and
// kubectl akri lint warn of it.
//
// Always: the objects of a few devices, their templates and the values are enough.
// Never: a client, a clock.
package advice
