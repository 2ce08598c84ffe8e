package facts

import (
	"cmp"
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"akri.sh/akri/cmd/kubectl-akri/view"
)

// System returns what tells about Akri itself, and the nodes. Without a namespace, Akri is
// searched in all of them, or else where it is installed unless someone chose another. With an
// error, the result says what could not be read.
func (r Reader) System(ctx context.Context, namespace string) (*view.System, error) {
	c := reading{Reader: r}
	system, err := c.system(ctx, namespace)
	system.Unread = c.unread
	return system, err
}

// Nodes returns what tells about the agents of an Akri in a namespace, or in all of them. If
// only one namespace of devices may be read, it is that of the user. With an error, the result
// says what could not be read.
func (r Reader) Nodes(ctx context.Context, akri, users string) (*view.NodeFacts, error) {
	c := reading{Reader: r}
	found := &view.NodeFacts{}
	var err error
	if found.System, err = c.system(ctx, akri); err == nil {
		found.Instances, found.Configurations, _, err = c.devices(ctx, users)
	}
	found.Unread = c.unread
	return found, err
}

func (c *reading) system(ctx context.Context, namespace string) (*view.System, error) {
	var deployments appsv1.DeploymentList
	var daemonSets appsv1.DaemonSetList
	var pods corev1.PodList
	s := &view.System{Namespace: namespace, Searched: true}
	for i, list := range []client.ObjectList{&deployments, &daemonSets, &pods} {
		things := []string{"Deployments", "DaemonSets", "Pods"}[i]
		all, err := c.everywhere(ctx, things, list, cmp.Or(namespace, Namespace), client.InNamespace(namespace),
			client.MatchingLabels{"app.kubernetes.io/part-of": "akri"})
		if s.Searched = s.Searched && all; err != nil {
			return s, err
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
	err := c.list(ctx, &nodes)
	if err == nil {
		s.Nodes = append([]corev1.Node{}, nodes.Items...)
	}
	return s, c.permitted("list Nodes", err)
}
