// Package informer caches objects of the API server, reduced to what the agent
// reads.
//
// It is client-go's informer over the dynamic client, because typed clients link
// every type of Kubernetes into the binary.
//
// Always: objects are converted before they are stored, so no whole object is kept.
// Never: a typed client.
package informer
