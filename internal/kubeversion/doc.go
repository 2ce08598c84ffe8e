// Package kubeversion knows the versions of Kubernetes that Akri runs on: the oldest
// one, and those it has been tested with.
//
// Always: a vendor's suffix, as in v1.34.4+k3s1, does not matter. Never: a guess about a
// version that cannot be read; it is neither refused nor said to be untested.
package kubeversion
