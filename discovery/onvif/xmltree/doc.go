// Package xmltree parses XML from cameras, which nobody controls, into a tree.
//
// Elements are found by their local names: cameras disagree about namespaces and
// prefixes more often than about names.
//
// Always: depth, number of elements and size are bounded. Never: a document type, an
// entity of the document's own, or anything that is loaded from elsewhere.
package xmltree
