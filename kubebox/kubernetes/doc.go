// Command kubenode is a whole Kubernetes in one executable: etcd,
// kube-apiserver, kube-controller-manager, kube-scheduler, kubelet and kubectl,
// compiled from their published Go modules. It becomes one of them by the name
// it is called by (a symbolic link kubelet -> kubenode) or by its first
// argument.
//
// One executable links in a third of the time and takes a third of the space of
// six. It is a module of its own, so that nothing of k8s.io/kubernetes reaches
// the dependencies of the project.
package main
