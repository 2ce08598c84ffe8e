// Package informer caches objects of the API server, reduced to what the agent
// reads. All that the agent watches, it watches through client-go's informers.
//
// Configurations and Instances come from the dynamic client, because their kinds are not
// in protobuf; Pods, Secrets and ConfigMaps from the client of agent/core.
//
// Always: objects are converted before they are stored, so no whole object is kept.
// Never: the client set of client-go.
package informer
