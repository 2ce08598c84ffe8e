package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/cmd/kubectl-akri/migration"
	"akri.sh/akri/cmd/kubectl-akri/view"
)

// definitions is the resource of CustomResourceDefinitions.
var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// surveyor reads the facts of a migration. What the user may not read is recorded.
type surveyor struct {
	*cluster
	facts *migration.Facts
}

// survey reads all that matters of a cluster with the original Akri. Only
// Configurations and Instances must be readable.
func (c *cluster) survey(ctx context.Context) (*migration.Facts, error) {
	s := &surveyor{c, &migration.Facts{Found: map[migration.Reference]bool{}}}
	for _, read := range []func(context.Context) error{
		s.akri, s.identity, s.definitions, s.nodes, s.objects, s.workloads, s.webhooks, s.references, s.release, s.pending, s.left,
	} {
		if err := read(ctx); err != nil {
			return nil, err
		}
	}
	return s.facts, nil
}

// skip records that something could not be read for lack of permission. Other errors
// are returned.
func (s *surveyor) skip(what string, err error) error {
	switch {
	case err == nil || meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
		return nil
	case apierrors.IsForbidden(err):
		unread := migration.Unread{What: what, Why: "no permission"}
		if !slices.Contains(s.facts.Unread, unread) {
			s.facts.Unread = append(s.facts.Unread, unread)
		}
		return nil
	}
	return fmt.Errorf("read %s: %w", what, err)
}

// all lists the objects of a resource in all namespaces.
func (s *surveyor) all(ctx context.Context, resource schema.GroupVersionResource, selector string) ([]unstructured.Unstructured, error) {
	list, err := s.dynamic.Resource(resource).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// decoded lists the objects of a resource in all namespaces as a type, and calls keep for each.
func decoded[T any](
	ctx context.Context, s *surveyor, what string, resource schema.GroupVersionResource, selector string, keep func(*T),
) error {
	items, err := s.all(ctx, resource, selector)
	if err != nil {
		return s.skip(what, err)
	}
	for _, item := range items {
		object, err := decode[T](item.Object)
		if err != nil {
			return fmt.Errorf("read %s %s/%s: %w", what, item.GetNamespace(), item.GetName(), err)
		}
		keep(object)
	}
	return nil
}

func (s *surveyor) akri(ctx context.Context) error {
	var err error
	s.facts.Configurations, err = s.all(ctx, v0.GroupVersion.WithResource("configurations"), "")
	if apierrors.IsNotFound(err) {
		return errors.New("the cluster has no Configurations of Akri: nothing is to be moved")
	}
	if err != nil {
		return fmt.Errorf("list Configurations of all namespaces: %w", err)
	}
	return decoded(ctx, s, "Instances", v0.GroupVersion.WithResource("instances"), "", func(instance *v0.Instance) {
		s.facts.Instances = append(s.facts.Instances, *instance)
	})
}

// identity reads what tells the cluster from others.
func (s *surveyor) identity(ctx context.Context) error {
	var namespace metav1.PartialObjectMetadata
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	_, err := s.exists(ctx, &namespace, "", metav1.NamespaceSystem)
	s.facts.Cluster = string(namespace.UID)
	return s.skip("the namespace "+metav1.NamespaceSystem, err)
}

func (s *surveyor) definitions(ctx context.Context) error {
	for _, name := range []string{"configurations.akri.sh", "instances.akri.sh"} {
		object, err := s.dynamic.Resource(definitions).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			if err := s.skip("CustomResourceDefinitions", err); err != nil {
				return err
			}
			continue
		}
		definition := migration.Definition{Name: name}
		versions, _, _ := unstructured.NestedSlice(object.Object, "spec", "versions")
		for _, element := range versions {
			version, _ := element.(map[string]any)
			_, found, _ := unstructured.NestedMap(version, "subresources", "status")
			definition.Status = definition.Status || found
		}
		for _, entry := range object.GetManagedFields() {
			if entry.Subresource == "" && !slices.Contains(definition.Managers, entry.Manager) {
				definition.Managers = append(definition.Managers, entry.Manager)
			}
		}
		s.facts.Definitions = append(s.facts.Definitions, definition)
	}
	return nil
}

func (s *surveyor) nodes(ctx context.Context) error {
	items, err := s.all(ctx, corev1.SchemeGroupVersion.WithResource("nodes"), "")
	if err != nil {
		return s.skip("Nodes", err)
	}
	s.facts.Nodes = map[string]bool{}
	for _, item := range items {
		node, err := decode[corev1.Node](item.Object)
		if err != nil {
			return fmt.Errorf("read Node %s: %w", item.GetName(), err)
		}
		s.facts.Nodes[node.Name] = true
		if !migration.Ready(node) {
			s.facts.Down = append(s.facts.Down, node.Name)
		}
	}
	slices.Sort(s.facts.Down)
	return nil
}

// objects reads the Pods that use devices, and what Akri's controller created.
func (s *surveyor) objects(ctx context.Context) error {
	core := corev1.SchemeGroupVersion
	return errors.Join(
		decoded(ctx, s, "Pods", core.WithResource("pods"), "", func(pod *corev1.Pod) {
			if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
				s.addUser("Pod", pod.ObjectMeta, pod.Spec.ServiceAccountName)
			}
			if pod.Labels[v0.LabelConfiguration] != "" || len(view.Requested(pod)) > 0 {
				s.facts.Pods = append(s.facts.Pods, *pod)
			}
		}),
		decoded(ctx, s, "Services", core.WithResource("services"), v0.LabelConfiguration, func(service *corev1.Service) {
			s.facts.Services = append(s.facts.Services, *service)
		}),
		decoded(ctx, s, "Jobs", batchv1.SchemeGroupVersion.WithResource("jobs"), v0.LabelConfiguration, func(job *batchv1.Job) {
			s.facts.Jobs = append(s.facts.Jobs, *job)
		}))
}

func (s *surveyor) workloads(ctx context.Context) error {
	keep := func(w migration.Workload) {
		s.addUser(w.Kind, metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}, w.Pod.ServiceAccountName)
		if w.Role() != migration.RoleNone {
			s.facts.Workloads = append(s.facts.Workloads, w)
		}
	}
	apps := appsv1.SchemeGroupVersion
	return errors.Join(
		decoded(ctx, s, "Deployments", apps.WithResource("deployments"), "", func(d *appsv1.Deployment) {
			w := workloadOf("Deployment", d.ObjectMeta, d.Spec.Selector, d.Spec.Template.Spec)
			w.Desired, w.Running, w.Ready = 1, d.Status.Replicas, d.Status.ReadyReplicas
			if d.Spec.Replicas != nil {
				w.Desired = *d.Spec.Replicas
			}
			keep(w)
		}),
		decoded(ctx, s, "DaemonSets", apps.WithResource("daemonsets"), "", func(d *appsv1.DaemonSet) {
			w := workloadOf("DaemonSet", d.ObjectMeta, d.Spec.Selector, d.Spec.Template.Spec)
			w.Desired, w.Running = d.Status.DesiredNumberScheduled, d.Status.CurrentNumberScheduled+d.Status.NumberMisscheduled
			w.Ready = d.Status.NumberReady
			keep(w)
		}),
		// These are none of Akri's, and may have no Pods now.
		decoded(ctx, s, "StatefulSets", apps.WithResource("statefulsets"), "", func(set *appsv1.StatefulSet) {
			s.addUser("StatefulSet", set.ObjectMeta, set.Spec.Template.Spec.ServiceAccountName)
		}),
		decoded(ctx, s, "CronJobs", batchv1.SchemeGroupVersion.WithResource("cronjobs"), "", func(job *batchv1.CronJob) {
			s.addUser("CronJob", job.ObjectMeta, job.Spec.JobTemplate.Spec.Template.Spec.ServiceAccountName)
		}))
}

func workloadOf(kind string, object metav1.ObjectMeta, selector *metav1.LabelSelector, pod corev1.PodSpec) migration.Workload {
	w := migration.Workload{
		Kind: kind, Namespace: object.Namespace, Name: object.Name,
		Labels: object.Labels, Annotations: object.Annotations, Pod: pod,
	}
	if selector != nil {
		w.Selector = selector.MatchLabels
	}
	return w
}

func (s *surveyor) webhooks(ctx context.Context) error {
	type registration = admissionregistrationv1.ValidatingWebhookConfiguration
	resource := admissionregistrationv1.SchemeGroupVersion.WithResource("validatingwebhookconfigurations")
	return decoded(ctx, s, "ValidatingWebhookConfigurations", resource, "", func(object *registration) {
		if webhook := migration.WebhookOf(object); webhook != nil {
			s.facts.Webhooks = append(s.facts.Webhooks, *webhook)
		}
	})
}

// references finds out which of the objects exist that Configurations refer to. Only
// the metadata of Secrets is read.
func (s *surveyor) references(ctx context.Context) error {
	for _, reference := range s.facts.References() {
		var object metav1.PartialObjectMetadata
		object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(reference.Kind))
		exists, err := s.exists(ctx, &object, reference.Namespace, reference.Name)
		if err != nil {
			if err := s.skip(reference.Kind+"s that Configurations refer to", err); err != nil {
				return err
			}
			continue
		}
		s.facts.Found[reference] = exists
	}
	return nil
}

// release reads Helm's record of Akri: the newest that can be decoded, and the names of all.
func (s *surveyor) release(ctx context.Context) error {
	selector := labels.Set{"owner": "helm", "name": s.releaseName()}.String()
	var newest metav1.Time
	var names []string
	err := decoded(ctx, s, releaseSecrets, secrets, selector, func(secret *corev1.Secret) {
		release, err := migration.ReadRelease(secret.Data["release"])
		if err != nil {
			return // the new Akri, or something else of that name
		}
		names = append(names, secret.Name)
		if s.facts.Release == nil || newest.Before(&secret.CreationTimestamp) {
			s.facts.Release, newest = release, secret.CreationTimestamp
			s.facts.Release.Namespace = secret.Namespace
		}
	})
	if s.facts.Release != nil {
		slices.Sort(names)
		s.facts.Release.Secrets = names
	}
	return err
}

// pending reads Helm's records of an interrupted installation of the new Akri.
func (s *surveyor) pending(ctx context.Context) error {
	selector := "owner=helm,name=akri,status in (pending-install,pending-upgrade,pending-rollback)"
	return decoded(ctx, s, releaseSecrets, secrets, selector, func(secret *corev1.Secret) {
		if _, err := migration.ReadRelease(secret.Data["release"]); err != nil { // not of the original
			s.facts.Pending = append(s.facts.Pending, migration.Object{Resource: "secrets", Namespace: secret.Namespace, Name: secret.Name})
		}
	})
}

var secrets = corev1.SchemeGroupVersion.WithResource("secrets")

const releaseSecrets = "Secrets in which Helm records releases"

// releaseName returns the name of the release that Akri's workloads belong to.
func (s *surveyor) releaseName() string {
	for _, w := range s.facts.Workloads {
		if name := w.Annotations["meta.helm.sh/release-name"]; name != "" && !strings.HasPrefix(string(w.Role()), "new") {
			return name
		}
	}
	return "akri"
}
