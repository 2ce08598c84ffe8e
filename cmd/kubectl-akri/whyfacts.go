package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/cmd/kubectl-akri/view"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/templating"
)

// facts collects what is known about an Instance. Apart from the Instance and its
// Configuration, objects that the user may not read are left out.
func (c *cluster) facts(ctx context.Context, namespace, name string) (*view.Facts, error) {
	facts := &view.Facts{Now: time.Now()}
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &facts.Instance)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("no Instance %q in %s: its device has not been found, or the name is wrong; "+
			"kubectl akri tree lists the Instances", name, where(namespace))
	}
	if err != nil {
		return nil, fmt.Errorf("read Instance %s: %w", name, err)
	}
	var configuration v0.Configuration
	err = c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: facts.Instance.Spec.ConfigurationName}, &configuration)
	if err == nil {
		facts.Configuration = &configuration
	} else if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read Configuration %s: %w", facts.Instance.Spec.ConfigurationName, err)
	}
	resources := []string{v0.ResourceName(name), v0.ResourceName(facts.Instance.Spec.ConfigurationName)}
	if facts.Pods, facts.AllPods, err = c.podsWith(ctx, namespace, resources); err != nil {
		return nil, err
	}
	if err := c.nodesOf(ctx, facts); err != nil {
		return nil, err
	}
	facts.Events, err = c.eventsOf(ctx, facts.Instance.Namespace, facts.Pods, uidsOf(facts.Instance.UID, facts.Instance.Status.Resources))
	return facts, err
}

// configurationFacts collects what is known about a Configuration.
func (c *cluster) configurationFacts(ctx context.Context, namespace, name string) (*view.ConfigurationFacts, error) {
	configuration, err := c.configuration(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	facts := &view.ConfigurationFacts{Configuration: *configuration, Now: time.Now()}
	if facts.Instances, err = c.instancesOf(ctx, namespace, name); err != nil {
		return nil, err
	}
	resources := []string{v0.ResourceName(name)}
	for i := range facts.Instances {
		resources = append(resources, v0.ResourceName(facts.Instances[i].Name))
	}
	if facts.Pods, facts.AllPods, err = c.podsWith(ctx, namespace, resources); err != nil {
		return nil, err
	}
	facts.Events, err = c.eventsOf(ctx, namespace, nil, uidsOf(configuration.UID, configuration.Status.Resources))
	return facts, err
}

// podFacts collects what is known about a Pod and the devices that it requests. The
// namespaces of the devices can be others: any Pod can request any device.
func (c *cluster) podFacts(ctx context.Context, object *unstructured.Unstructured) (*view.PodFacts, error) {
	pod, err := decode[corev1.Pod](object.Object)
	if err != nil {
		return nil, err
	}
	facts := &view.PodFacts{Pod: *pod, AllPods: true, Now: time.Now()}
	for _, resource := range slices.Sorted(maps.Keys(view.Requested(pod))) {
		name := strings.TrimPrefix(resource, v0.Domain+"/")
		if err := c.addRequested(ctx, facts, resource, name); err != nil {
			return nil, err
		}
	}
	facts.Events, err = c.eventsOf(ctx, pod.Namespace, []corev1.Pod{*pod}, nil)
	return facts, err
}

// addRequested adds the Instance or the Configuration of a resource that a Pod requests.
func (c *cluster) addRequested(ctx context.Context, facts *view.PodFacts, resource, name string) error {
	var instances v0.InstanceList
	var configurations v0.ConfigurationList
	if err := c.everywhere(ctx, &instances, facts.Pod.Namespace); err != nil {
		return fmt.Errorf("list Instances: %w", err)
	}
	if err := c.everywhere(ctx, &configurations, facts.Pod.Namespace); err != nil {
		return fmt.Errorf("list Configurations: %w", err)
	}
	if namespace, found := namespaceOf(pointers(instances.Items), name, facts.Pod.Namespace); found {
		one, err := c.facts(ctx, namespace, name)
		if err != nil {
			return err
		}
		facts.Instances, facts.AllPods = append(facts.Instances, one), facts.AllPods && one.AllPods
		return nil
	}
	namespace, found := namespaceOf(pointers(configurations.Items), name, facts.Pod.Namespace)
	if !found {
		facts.Unknown = append(facts.Unknown, resource)
		return nil
	}
	one, err := c.configurationFacts(ctx, namespace, name)
	if err != nil {
		return err
	}
	facts.Configurations, facts.AllPods = append(facts.Configurations, one), facts.AllPods && one.AllPods
	return nil
}

// namespaceOf returns the namespace of the object with a name: the preferred one, or
// else the first that has such an object.
func namespaceOf[O client.Object](objects []O, name, preferred string) (namespace string, found bool) {
	for _, object := range objects {
		switch {
		case object.GetName() != name:
		case object.GetNamespace() == preferred:
			return preferred, true
		case !found:
			namespace, found = object.GetNamespace(), true
		}
	}
	return namespace, found
}

func pointers[T any](items []T) []*T {
	all := make([]*T, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}

// objectFacts collects what is known about an object that Akri created.
func (c *cluster) objectFacts(ctx context.Context, object *unstructured.Unstructured, made *rendered) (*view.ObjectFacts, error) {
	facts := &view.ObjectFacts{Object: inventory.RefOfObject(object).String(), Origin: originText(made), Notes: made.notes}
	var recorded []v0.ResourceStatus
	if made.parent.Level == templating.InstanceLevel {
		var instance v0.Instance
		if err := c.Get(ctx, made.parent.NamespacedName, &instance); err != nil {
			return nil, fmt.Errorf("read Instance %s: %w", made.parent.NamespacedName, err)
		}
		recorded = instance.Status.Resources
	} else {
		configuration, err := c.configuration(ctx, made.parent.Namespace, made.parent.Name)
		if err != nil {
			return nil, err
		}
		recorded = configuration.Status.Resources
	}
	facts.State = stateIn(made.object, recorded)
	if kind := object.GroupVersionKind(); kind.Group != "" || kind.Kind != "Service" {
		return facts, nil
	}
	selector, _, _ := unstructured.NestedStringMap(object.Object, "spec", "selector")
	if len(selector) == 0 {
		return facts, nil
	}
	var pods corev1.PodList
	err := c.List(ctx, &pods, client.InNamespace(object.GetNamespace()), client.MatchingLabels(selector))
	if apierrors.IsForbidden(err) {
		return facts, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list Pods: %w", err)
	}
	facts.Selector, facts.Selected = selector, pods.Items
	return facts, nil
}

// everywhere lists objects of all namespaces if permitted, or else of one.
func (c *cluster) everywhere(ctx context.Context, list client.ObjectList, namespace string) error {
	err := c.List(ctx, list)
	if apierrors.IsForbidden(err) {
		return c.List(ctx, list, client.InNamespace(namespace))
	}
	return err
}

// podsWith returns the Pods that request one of the resources. All reports whether it
// was permitted to search all namespaces.
func (c *cluster) podsWith(ctx context.Context, namespace string, resources []string) (found []corev1.Pod, all bool, err error) {
	var pods corev1.PodList
	all = true
	err = c.List(ctx, &pods)
	if apierrors.IsForbidden(err) {
		all = false
		err = c.List(ctx, &pods, client.InNamespace(namespace))
	}
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, all, fmt.Errorf("list Pods: %w", err)
	}
	for i := range pods.Items {
		requested := view.Requested(&pods.Items[i])
		if slices.ContainsFunc(resources, func(resource string) bool { return requested[resource] > 0 }) {
			found = append(found, pods.Items[i])
		}
	}
	return found, all, nil
}

// nodesOf adds the nodes that see the device.
func (c *cluster) nodesOf(ctx context.Context, facts *view.Facts) error {
	nodes := map[string]corev1.Node{}
	for _, name := range facts.Instance.Spec.Nodes {
		var node corev1.Node
		err := c.Get(ctx, client.ObjectKey{Name: name}, &node)
		switch {
		case apierrors.IsForbidden(err):
			return nil // facts.Nodes stays nil: unknown
		case err == nil:
			nodes[name] = node
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("read Node %s: %w", name, err)
		}
	}
	facts.Nodes = nodes
	return nil
}

// uidsOf returns the UIDs of a parent and of its objects.
func uidsOf(parent types.UID, resources []v0.ResourceStatus) []types.UID {
	uids := []types.UID{parent}
	for _, resource := range resources {
		uids = append(uids, types.UID(resource.UID))
	}
	return uids
}

// eventsOf returns the Events of objects of a namespace, and of Pods of any.
func (c *cluster) eventsOf(ctx context.Context, namespace string, pods []corev1.Pod, objects []types.UID) ([]corev1.Event, error) {
	about := map[types.UID]bool{}
	for _, uid := range objects {
		about[uid] = true
	}
	namespaces := map[string]bool{namespace: true}
	for i := range pods {
		about[pods[i].UID] = true
		namespaces[pods[i].Namespace] = true
	}
	var found []corev1.Event
	for namespace := range namespaces {
		var events corev1.EventList
		err := c.List(ctx, &events, client.InNamespace(namespace))
		if apierrors.IsForbidden(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list Events: %w", err)
		}
		for _, event := range events.Items {
			if event.InvolvedObject.UID != "" && about[event.InvolvedObject.UID] {
				found = append(found, event)
			}
		}
	}
	return found, nil
}
