// Package sbom writes the software bill of materials of a Go program, as SPDX and as
// CycloneDX. What the program consists of is read from the program itself.
//
// Always: the same program and version produce the same documents, byte for byte.
// Never: a module that is not linked into the program.
package sbom
