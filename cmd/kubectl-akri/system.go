package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/cmd/kubectl-akri/view"
)

// permitted returns an error if an action has failed. If it is not permitted, that is noted
// instead, and the command goes on without the result.
func (c *cluster) permitted(action string, err error) error {
	if err == nil || apierrors.IsForbidden(err) {
		note := "no permission to " + action + ", so a cause may be missing (the ClusterRole akri-diagnose grants it)"
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
	var deployments appsv1.DeploymentList
	var daemonSets appsv1.DaemonSetList
	var pods corev1.PodList
	s := &view.System{Namespace: namespace, Searched: true}
	for i, list := range []client.ObjectList{&deployments, &daemonSets, &pods} {
		things := []string{"Deployments", "DaemonSets", "Pods"}[i]
		all, err := c.everywhere(ctx, things, list, cmp.Or(namespace, agentNamespace), client.InNamespace(namespace),
			client.MatchingLabels{"app.kubernetes.io/part-of": "akri"})
		if s.Searched = s.Searched && all; err != nil {
			return nil, err
		}
	}
	for i := range deployments.Items {
		d := &deployments.Items[i]
		s.Workloads = append(s.Workloads, view.Workload{ObjectMeta: d.ObjectMeta, Kind: "Deployment", Pod: d.Spec.Template.Spec,
			Wanted: ptr.Deref(d.Spec.Replicas, 1), Ready: d.Status.ReadyReplicas})
	}
	for i := range daemonSets.Items {
		d := &daemonSets.Items[i]
		s.Workloads = append(s.Workloads, view.Workload{ObjectMeta: d.ObjectMeta, Kind: "DaemonSet", Pod: d.Spec.Template.Spec,
			Wanted: d.Status.DesiredNumberScheduled, Ready: d.Status.NumberReady})
	}
	s.Pods = slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return view.ComponentOf(pod.Labels) == "" })
	var nodes corev1.NodeList
	err := c.List(ctx, &nodes)
	if err == nil {
		s.Nodes = append([]corev1.Node{}, nodes.Items...)
	}
	return s, c.permitted("list Nodes", err)
}
