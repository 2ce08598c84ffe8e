// Package filewatch signals when a file is created, changed or deleted.
//
// Always: a lost event counts as a change; the callers of a file share an inotify instance.
// Never: the content of the file is read.
package filewatch
