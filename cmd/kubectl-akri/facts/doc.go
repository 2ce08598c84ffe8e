// Package facts reads from a cluster what kubectl akri tree, why, explain, nodes, check and other
// commands show.
//
// A [Reader] reads the objects; the types, conclusions and texts are those of package view.
//
// Always: what the user may not read is left out, and is part of the result.
// Never: output, writes, or state between calls.
package facts
