// Package manifest reads the Configurations and Instances that commands take from
// files, and shows the problems in them.
//
// Always: a problem is shown with its place, the line it is on, the cause and a
// remedy. Never: a client, a clock, the network.
package manifest
