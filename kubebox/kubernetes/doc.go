// Command kubenode is all of Kubernetes in one executable: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler, kubelet, kube-proxy and kubectl, compiled from
// their published Go modules. The name it is called by (a symbolic link kubelet ->
// kubenode) or its first argument selects the program.
//
// One executable takes a third of the link time and a third of the space of six. It
// is a module of its own, so that k8s.io/kubernetes stays out of the dependencies of
// the project.
package main
