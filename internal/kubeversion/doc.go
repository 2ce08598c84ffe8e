// Package kubeversion knows the versions of Kubernetes that Akri runs on: the oldest
// one, those it has been tested with, and what Akri does without on older ones.
//
// Always: a vendor's suffix, as in v1.34.4+k3s1, does not matter. Never: a guess about a
// version that cannot be read; it is neither refused nor said to lack anything.
package kubeversion
