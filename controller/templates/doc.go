// Package templates compiles a Configuration's broker resources, and its old
// fields, into what is rendered, and names each template as its author knows it.
// It never renders, and never talks to an API server.
package templates
