// Package envelope reads the SOAP envelopes of cameras, which nobody controls.
//
// Elements are found by their local names, which is what package xml does for names
// without a namespace: cameras disagree about namespaces and prefixes more often than about
// names.
//
// Always: the size is bounded. Never: an entity of the document's own is expanded, or
// anything is loaded from elsewhere.
package envelope
