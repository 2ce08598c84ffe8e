// Package kinds finds the resources of kinds that the API server serves.
//
// Templates name kinds that do not exist, or do not exist yet. A [Mapper] asks the API
// server for all kinds at once, and at most once a minute because of unknown ones,
// however many templates, users and Instances name how many of them. It is told of
// changes of CustomResourceDefinitions ([Mapper.Changed]), so that a kind that was just
// installed is found at once, and one that was installed again with another scope or
// plural is not mistaken for the old one.
//
// controller-runtime's lazy mapper would send a request for each unknown kind, with a lock
// that the known ones wait for, and never forget a kind. It also takes kinds in lower case
// and lists for kinds, which the API server rejects in objects: they would be second names
// in permissions and policies.
//
// Always: one discovery at a time. A kind that was found is forgotten only after a
// CustomResourceDefinition of its group has changed, not because an API server that is
// starting does not list it yet, and until then it waits for no discovery. In the half minute
// after a change, what is found of its group is not remembered: discovery may lag. Never: a goroutine.
package kinds
