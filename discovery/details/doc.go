// Package details decodes the discoveryDetails of the built-in handlers. The handlers,
// the admission webhook and kubectl akri use the same code, so a Configuration that
// passes one of them passes all.
//
// Always: an unknown key, a repeated key and a value of the wrong type are errors that
// name the place and the remedy. Time and memory are bounded for any text. Never: an import of gRPC or of a handler.
package details
