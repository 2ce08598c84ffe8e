// Package handlers tests the built-in discovery handlers on real nodes, from the device
// to its broker. The devices are virtual ones of the kernel and other people's programs;
// see package peers.
//
// Always: a handler runs from its manifests in config/, with no more privileges. Never: a
// change to the machine's own network or devices that outlives the test.
package handlers
