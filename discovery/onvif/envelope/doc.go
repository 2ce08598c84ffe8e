// Package envelope reads the SOAP envelopes of cameras, which nobody controls.
//
// Elements are found by their local names, which is what package xml does for names
// without a namespace: cameras disagree about namespaces and prefixes more often than about
// names.
//
// Always: size and depth are bounded. Never: a document type, an entity of the document's
// own, or anything that is loaded from elsewhere.
package envelope
