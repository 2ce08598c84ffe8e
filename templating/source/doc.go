// Package source parses YAML files and locates the fields of their objects, so that
// a [templating.Diagnostic] can be printed as FILE:LINE:COLUMN.
//
// Always: objects are decoded as kubectl decodes them. Positions are exact for
// plain and quoted text on one line and for literal blocks (|); inside folded text
// they are those of its first line.
//
// Never: a file; the caller reads it.
package source
