// Package properties resolves a Configuration's discoveryProperties: values,
// and keys of Secrets and ConfigMaps.
//
// resolve.go is pure. The [Watcher] watches, by name, exactly the objects that some
// Configuration refers to, and reports which Configurations a change affects.
//
// Always: a reference to another namespace is refused before anything is read,
// unless the operator allows it. Never: a value in a log or an error.
package properties
