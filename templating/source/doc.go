// Package source remembers where in a YAML file each field of an object stands, so
// that a [templating.Diagnostic] can be shown as FILE:LINE:COLUMN.
//
// Objects are decoded as kubectl decodes them. Positions are exact for plain and
// quoted text on one line and for literal blocks (|); inside folded text they are
// those of its beginning.
package source
