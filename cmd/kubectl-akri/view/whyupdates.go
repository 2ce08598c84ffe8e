package view

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/advice"
	"akri.sh/akri/internal/finding"
)

// revisionOf returns the Deployment or DaemonSet that a Pod belongs to, and of which of its
// revisions the Pod is; empty for other Pods.
func revisionOf(pod *corev1.Pod) (kind, name, revision string) {
	owner := metav1.GetControllerOfNoCopy(pod)
	switch {
	case owner == nil:
	case owner.Kind == "ReplicaSet":
		revision = pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
		if name, found := strings.CutSuffix(owner.Name, "-"+revision); found {
			return advice.Deployment, name, revision
		}
	case owner.Kind == advice.DaemonSet:
		return owner.Kind, owner.Name, pod.Labels[appsv1.DefaultDaemonSetUniqueLabelKey]
	}
	return "", "", ""
}

// updateWaits reports that a Pod waits for a resource that Pods of an older revision have,
// which are ended only when the Pod is ready. One that is being ended releases it soon.
func (f *Facts) updateWaits(pod *corev1.Pod, resource string) (cause, remedy string) {
	kind, name, revision := revisionOf(pod)
	for i := range f.Pods {
		old := &f.Pods[i]
		oldKind, oldName, oldRevision := revisionOf(old)
		if kind == "" || old.Namespace != pod.Namespace || oldKind != kind || oldName != name || oldRevision == revision ||
			old.Spec.NodeName == "" || Terminated(old) || !Requests(old, resource) {
			continue
		}
		if old.DeletionTimestamp != nil {
			return "", ""
		}
		cause = fmt.Sprintf("\nIt is to replace %s, which %s %s ends only when the new Pod is ready.", f.podName(old), kind, name)
	}
	if cause == "" {
		return "", ""
	}
	return cause, advice.EndOldPodFirst(kind) + "; if Akri has created it, in the template of the Configuration"
}

// updatesWait reports the first Instance whose Pod waits for one that it is to replace: all
// that have the template do.
func (f *Facts) updatesWait() []finding.Mistake {
	for i := range f.Instances {
		one := &Facts{Instance: &f.Instances[i], Configuration: f.Configuration, Pods: f.Pods}
		resource := v0.ResourceName(one.Instance.Name)
		for j := range f.Pods {
			message, found := unschedulable(&f.Pods[j])
			if cause, _ := one.updateWaits(&f.Pods[j], resource); cause != "" && found && Requests(&f.Pods[j], resource) {
				return one.unschedulable(&f.Pods[j], message)
			}
		}
	}
	return nil
}
