// Package schema checks Configurations and Instances against their
// CustomResourceDefinitions, without a cluster: what the API server would refuse,
// and the unknown fields that it would silently drop.
//
// Always: all mistakes at once, each with the path of the field, the cause and
// what to write instead. Never: a client, a file, a clock.
package schema
