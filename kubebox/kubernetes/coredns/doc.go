// Command coredns is CoreDNS with the plugins that a cluster without a connection to
// other networks needs. The other plugins, and what they depend on, are not compiled.
//
// It is an executable of its own, not a part of kubenode, because CoreDNS adds its flags
// and its client metrics to those of every program it is linked with.
package main
