// Package helm renders and installs the chart of Akri with Helm's own code, as the command
// helm does.
//
// Always: Render needs no cluster, and the same values render the same text.
//
// Never: objects of another release are changed, unless TakeOwnership is set.
package helm
