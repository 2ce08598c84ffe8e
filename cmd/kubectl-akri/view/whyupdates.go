package view

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"akri.sh/akri/controller/advice"
)

// revisionOf returns the Deployment that a Pod belongs to, and the revision that the Pod was
// created from; empty for other Pods.
func revisionOf(pod *corev1.Pod) (deployment, revision string) {
	revision = pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && owner.Kind == "ReplicaSet" && revision != "" {
		deployment, _ = strings.CutSuffix(owner.Name, "-"+revision)
	}
	return deployment, revision
}

// updateWaits reports that a Pod waits for a resource that Pods of an older revision have,
// which are ended only when the Pod is ready. One that is being ended releases it soon.
func (f *Facts) updateWaits(pod *corev1.Pod, resource string) (cause, remedy string) {
	deployment, revision := revisionOf(pod)
	for i := range f.Pods {
		old := &f.Pods[i]
		oldDeployment, oldRevision := revisionOf(old)
		if deployment == "" || old.Namespace != pod.Namespace || oldDeployment != deployment || oldRevision == revision ||
			old.Spec.NodeName == "" || Terminated(old) || !Requests(old, resource) {
			continue
		}
		if old.DeletionTimestamp != nil {
			return "", ""
		}
		cause = fmt.Sprintf("\nIt is meant to replace %s, which Deployment %s stops only when the new Pod is ready.", f.podName(old), deployment)
	}
	if cause == "" {
		return "", ""
	}
	return cause, advice.EndOldPodFirst + "; if Akri has created it, in the template of the Configuration"
}
