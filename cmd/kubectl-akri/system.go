package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/cmd/kubectl-akri/view"
)

// permitted returns an error if an action has failed. If it is not permitted, that is noted
// instead, and the command goes on without the result.
func (c *cluster) permitted(action string, err error) error {
	switch {
	case apierrors.IsForbidden(err):
		if !slices.Contains(c.unread, action) {
			c.unread = append(c.unread, action)
		}
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", action, err)
	}
	return nil
}

// noteUnread says what was not permitted.
func (c *cluster) noteUnread(streams cli.Streams) {
	for _, action := range c.unread {
		fmt.Fprintf(streams.Err, "note: no permission to %s, so a cause can be missing\n", action)
	}
}

// system reads what tells about Akri itself, and the nodes. Without a namespace, Akri is
// searched in all of them, or else where it is installed unless someone chose another.
func (c *cluster) system(ctx context.Context, namespace string) (*view.System, error) {
	s := &view.System{Namespace: cmp.Or(namespace, agentNamespace), Searched: true, Renewed: map[string]time.Time{}}
	var deployments appsv1.DeploymentList
	var daemonSets appsv1.DaemonSetList
	for action, list := range map[string]client.ObjectList{"list Deployments": &deployments, "list DaemonSets": &daemonSets} {
		err := c.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{"app.kubernetes.io/part-of": "akri"})
		if s.Searched = s.Searched && err == nil; namespace == "" && apierrors.IsForbidden(err) {
			err = c.List(ctx, list, client.InNamespace(agentNamespace), client.MatchingLabels{"app.kubernetes.io/part-of": "akri"})
		}
		if err := c.permitted(action, err); err != nil {
			return nil, err
		}
	}
	for _, d := range deployments.Items {
		s.Workloads = append(s.Workloads, view.Workload{ObjectMeta: d.ObjectMeta, Kind: "Deployment", Wanted: *d.Spec.Replicas,
			Ready: d.Status.ReadyReplicas, Template: d.Spec.Template})
	}
	for _, d := range daemonSets.Items {
		s.Workloads = append(s.Workloads, view.Workload{ObjectMeta: d.ObjectMeta, Kind: "DaemonSet", Wanted: d.Status.DesiredNumberScheduled,
			Ready: d.Status.NumberReady, Template: d.Spec.Template})
	}
	s.Workloads = slices.DeleteFunc(s.Workloads, func(w view.Workload) bool { return view.ComponentOf(w.Labels) == "" })
	namespaces := map[string]bool{s.Namespace: len(s.Workloads) == 0}
	for i := range s.Workloads {
		namespaces[s.Workloads[i].Namespace] = true
		if component := view.ComponentOf(s.Workloads[i].Labels); component == view.Controller || component == view.Agent {
			s.Namespace = s.Workloads[i].Namespace
		}
	}
	maps.DeleteFunc(namespaces, func(_ string, used bool) bool { return !used })
	for namespace := range namespaces {
		pods, err := c.systemPods(ctx, namespace)
		if err := c.permitted("list Pods in namespace "+namespace, err); err != nil {
			return nil, err
		}
		s.Pods = append(s.Pods, pods...)
	}
	registration := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1",
		Kind: "ValidatingWebhookConfiguration"}}
	s.Guarded = c.Get(ctx, client.ObjectKey{Name: "akri-configurations"}, registration) == nil
	return s, c.addNodes(ctx, s)
}

// addNodes adds the nodes, and when their kubelets have renewed their Leases.
func (c *cluster) addNodes(ctx context.Context, s *view.System) error {
	var nodes corev1.NodeList
	err := c.List(ctx, &nodes)
	if s.Nodes = nodes.Items; err != nil {
		return c.permitted("list Nodes", err)
	}
	var leases coordinationv1.LeaseList
	_ = c.List(ctx, &leases) // they only tell it earlier
	for _, lease := range leases.Items {
		if lease.Spec.RenewTime == nil {
			continue
		}
		if lease.Namespace == corev1.NamespaceNodeLease {
			s.Renewed[lease.Name] = lease.Spec.RenewTime.Time
		}
		if lease.Spec.RenewTime.After(s.Now) {
			s.Now = lease.Spec.RenewTime.Time
		}
	}
	return nil
}
