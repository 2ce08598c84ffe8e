// Package bundle writes the archive of kubectl akri report. It decides what is left out
// of the archive, how large it becomes, and how its files are ordered.
//
// Always: all content passes through Redactor, whatever its source. The same content
// makes the same archive. What does not fit is named in the archive.
//
// Never: a cluster.
package bundle
