// Package kinds finds the resources of kinds: what the API server serves, as a
// RESTMapper.
//
// Templates name kinds that do not exist, or do not exist yet. A [Mapper] asks the API
// server for all kinds at once, and at most once a minute because of an unknown one,
// however many templates, users and Instances name how many of them. It is told of
// changes of CustomResourceDefinitions ([Mapper.Changed]), so that a kind that was just
// installed is found at once, and one that was installed again with another scope or
// plural is not mistaken for the old one.
//
// Always: one discovery at a time; a kind is forgotten only after its
// CustomResourceDefinition has changed, not because an API server that is starting does
// not list it yet; a known kind waits for no discovery. Never: a goroutine.
package kinds
