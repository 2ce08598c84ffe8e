package kubelettest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// apiServer knows the Pods of the node.
type apiServer struct {
	pods dynamic.NamespaceableResourceInterface
	node string
	// reports are statuses to write. As in the kubelet, nothing waits for that.
	reports chan *corev1.Pod
	running sync.WaitGroup
}

// Join lets an API server know the Pods that are created from now on, and what becomes of
// them, as Pods of a node. It does so once.
func (k *Kubelet) Join(config *rest.Config, node string) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create the client of the kubelet: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.api == nil {
		pods := client.Resource(corev1.SchemeGroupVersion.WithResource("pods"))
		api := &apiServer{pods: pods, node: node, reports: make(chan *corev1.Pod, 1000)}
		api.running.Go(func() {
			for pod := range api.reports {
				if err := api.report(pod); err != nil {
					k.errorf("kubelet: report the status of Pod %s: %v", pod.Name, err)
				}
			}
		})
		k.api = api
	}
	return nil
}

// leave deletes the Pods, and ends what Join has begun.
func (k *Kubelet) leave() {
	if k.api == nil {
		return
	}
	close(k.api.reports)
	k.api.running.Wait()
	for _, state := range k.pods {
		k.delete(state.pod)
	}
}

func (k *Kubelet) server() *apiServer {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.api
}

// Create lets the API server know a Pod that is bound to the node, and sets its UID.
// [Kubelet.Admit] does the same for Pods without a UID.
func (k *Kubelet) Create(pod *corev1.Pod) {
	if pod.UID != "" {
		return
	}
	if pod.Namespace == "" {
		pod.Namespace = metav1.NamespaceDefault
	}
	api := k.server()
	if api == nil {
		pod.UID = types.UID(fmt.Sprintf("%s-%d", pod.Name, time.Now().UnixNano()))
		return
	}
	bound := pod.DeepCopy()
	bound.Spec.NodeName = api.node
	for _, containers := range [][]corev1.Container{bound.Spec.InitContainers, bound.Spec.Containers} {
		for i := range containers {
			containers[i].Image = "none"
		}
	}
	bound.APIVersion, bound.Kind = "v1", "Pod"
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(bound)
	if err == nil {
		var created *unstructured.Unstructured
		created, err = api.pods.Namespace(pod.Namespace).
			Create(context.Background(), &unstructured.Unstructured{Object: content}, metav1.CreateOptions{})
		if err == nil {
			pod.UID = created.GetUID()
			return
		}
	}
	k.errorf("kubelet: create Pod %s: %v", pod.Name, err)
}

// report writes the status of a Pod, unless another one has its name meanwhile.
func (a *apiServer) report(pod *corev1.Pod) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": pod.Status})
	if err != nil {
		return err
	}
	_, err = a.pods.Namespace(pod.Namespace).
		Patch(context.Background(), pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) || err != nil && strings.Contains(err.Error(), "metadata.uid") {
		return nil
	}
	return err
}

// delete removes a Pod from the API server, if it is still there.
func (k *Kubelet) delete(pod *corev1.Pod) {
	if api := k.server(); api != nil {
		// Another Pod may have the name meanwhile.
		options := metav1.DeleteOptions{GracePeriodSeconds: new(int64), Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}
		_ = api.pods.Namespace(pod.Namespace).Delete(context.Background(), pod.Name, options)
	}
}
