// Package properties resolves a Configuration's discoveryProperties: values,
// and keys of Secrets and ConfigMaps.
//
// resolve.go is pure. The [Watcher] keeps a copy of exactly the objects that
// some Configuration refers to, watched by name, and says which Configurations
// a change concerns.
//
// Always: objects of another namespace are refused unless the operator allows
// them, before anything is read. Never: a value reaches a log or an error.
package properties
