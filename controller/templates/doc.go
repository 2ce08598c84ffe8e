// Package templates compiles the broker resources of a Configuration and its legacy
// fields, and names each template by its place in the Configuration.
//
// Always: a generation of a Configuration that is in use is compiled once, within a
// bound on memory. Never: a rendering, an API server.
package templates
