// Package licenses finds the licenses of a Go program: of all modules with packages that
// are linked into it, and of Go itself.
//
// Always: a license file next to a linked package counts, not only that of its module.
// Never: a guess. A license that is not known, or asks for more than its text to come with
// the program, is an error.
package licenses
