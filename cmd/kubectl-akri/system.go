package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/cmd/kubectl-akri/view"
)

// permitted returns an error if an action has failed. If it is not permitted, that is noted
// instead, and the command goes on without the result.
func (c *cluster) permitted(action string, err error) error {
	if err == nil || apierrors.IsForbidden(err) {
		note := "no permission to " + action + ", so a cause can be missing (the ClusterRole akri-diagnose permits it)"
		if err != nil && !slices.Contains(c.notes, note) {
			c.notes = append(c.notes, note)
		}
		return nil
	}
	return fmt.Errorf("%s: %w", action, err)
}

// printNotes prints what was not permitted, and what else a command has noted.
func (c *cluster) printNotes(streams cli.Streams) {
	for _, note := range c.notes {
		fmt.Fprintf(streams.Err, "note: %s\n", note)
	}
}

// everywhere lists objects of all namespaces if permitted, or else of one, and reports which.
func (c *cluster) everywhere(
	ctx context.Context, things string, list client.ObjectList, namespace string, options ...client.ListOption,
) (bool, error) {
	err := c.List(ctx, list, options...)
	if !apierrors.IsForbidden(err) {
		return true, c.permitted("list "+things, err)
	}
	others := err
	if err = c.List(ctx, list, append(options, client.InNamespace(namespace))...); err == nil {
		return false, c.permitted("list "+things+" in other namespaces", others)
	}
	return false, c.permitted("list "+things, err)
}

// devices lists the Instances and Configurations of all namespaces if permitted, or else of
// one, and reports which.
func (c *cluster) devices(ctx context.Context, namespace string, options ...client.ListOption) (
	instances []v0.Instance, configurations []v0.Configuration, all bool, err error,
) {
	var found v0.InstanceList
	var by v0.ConfigurationList
	all, err = c.everywhere(ctx, "Configurations", &by, namespace, options...)
	if err == nil {
		all, err = c.everywhere(ctx, "Instances", &found, namespace, options...) // who may read the one may read the other
	}
	return found.Items, by.Items, all, err
}

// system reads what tells about Akri itself, and the nodes. Without a namespace, Akri is
// searched in all of them, or else where it is installed unless someone chose another.
func (c *cluster) system(ctx context.Context, namespace string) (*view.System, error) {
	s := &view.System{Namespace: cmp.Or(namespace, agentNamespace), Searched: true, Renewed: map[string]time.Time{}}
	labels := client.MatchingLabels{"app.kubernetes.io/part-of": "akri"}
	for _, kind := range []string{"Deployment", "DaemonSet"} {
		list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "apps/v1", "kind": kind + "List"}}
		all, err := c.everywhere(ctx, kind+"s", list, s.Namespace, client.InNamespace(namespace), labels)
		if s.Searched = s.Searched && all; err != nil {
			return nil, err
		}
		for i := range list.Items {
			workload, err := decode[view.Workload](list.Items[i].Object)
			if err != nil {
				return nil, err
			}
			s.Workloads = append(s.Workloads, *workload)
		}
	}
	var pods corev1.PodList
	if _, err := c.everywhere(ctx, "Pods", &pods, s.Namespace, client.InNamespace(namespace), labels); err != nil {
		return nil, err
	}
	s.Pods = slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return view.ComponentOf(pod.Labels) == "" })
	registration := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1",
		Kind: "ValidatingWebhookConfiguration"}}
	s.Guarded = c.Get(ctx, client.ObjectKey{Name: "akri-configurations"}, registration) == nil
	var nodes corev1.NodeList
	err := c.List(ctx, &nodes)
	if err == nil {
		s.Nodes = append([]corev1.Node{}, nodes.Items...)
	}
	var leases coordinationv1.LeaseList
	_ = c.List(ctx, &leases) // they only tell earlier what the nodes tell
	for i := range leases.Items {
		if renewed := leases.Items[i].Spec.RenewTime; renewed != nil {
			s.Renewed[leases.Items[i].Name] = renewed.Time
		}
	}
	return s, c.permitted("list Nodes", err)
}
