// Package informer caches objects of the API server, reduced to what the agent
// reads.
//
// It uses client-go's informer with the dynamic client, because typed clients link
// every Kubernetes type into the binary.
//
// Always: objects are converted before they are stored, so no whole object is kept.
// Never: a typed client.
package informer
