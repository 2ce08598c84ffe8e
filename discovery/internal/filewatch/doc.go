// Package filewatch signals when a file is created, changed or deleted.
//
// Always: a lost event counts as a change. Never: the content of the file is read.
package filewatch
