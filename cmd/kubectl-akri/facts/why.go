package facts

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/cmd/kubectl-akri/view"
	"akri.sh/akri/controller/advice"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/templating"
)

// Why returns what is known about an object, or about the Instance or Configuration that Akri
// created it for, and the problems of its devices. The kind is a resource type as kubectl knows
// it, or "" if only one object has the name. With an error, the facts say what could not be read.
func (r Reader) Why(ctx context.Context, resourceType, namespace, name string) (*view.Facts, error) {
	c := reading{Reader: r}
	facts, err := c.why(ctx, resourceType, namespace, name)
	if err != nil {
		return &view.Facts{Unread: c.unread}, err
	}
	facts.Unread = c.unread
	facts.Conclude()
	return facts, nil
}

func (c *reading) why(ctx context.Context, resourceType, namespace, name string) (*view.Facts, error) {
	if resourceType == "" {
		var err error
		if resourceType, err = c.kindOf(ctx, namespace, name); err != nil {
			return nil, err
		}
	}
	kind, err := c.kind(resourceType)
	if err != nil {
		return nil, err
	}
	switch kind.GroupKind() {
	case v0.InstanceKind.GroupKind():
		return c.parentFacts(ctx, templating.InstanceLevel, client.ObjectKey{Namespace: namespace, Name: name})
	case v0.ConfigurationKind.GroupKind():
		return c.parentFacts(ctx, templating.ConfigurationLevel, client.ObjectKey{Namespace: namespace, Name: name})
	}
	object, err := c.object(ctx, kind, namespace, name)
	if err != nil {
		return nil, err
	}
	made, err := c.origin(ctx, object)
	if kind.GroupKind() == (schema.GroupKind{Kind: "Pod"}) {
		return c.podFacts(ctx, object, made, err)
	}
	if err != nil {
		return nil, err
	}
	facts, err := c.parentFacts(ctx, made.parent.Level, made.parent.NamespacedName)
	if err != nil {
		return nil, err
	}
	_, recorded := facts.Recorded()
	facts.Created = &view.Made{
		Object: inventory.RefOfObject(object).String(), State: stateOf(made.object, recorded), For: originText(made), Notes: made.notes,
	}
	return facts, c.addSelected(ctx, facts.Created, object)
}

// parent reads an Instance with its Configuration, or a Configuration with its Instances.
func (c *reading) parent(ctx context.Context, level templating.Level, key client.ObjectKey) (*view.Facts, error) {
	facts := &view.Facts{Now: time.Now()}
	var err error
	if level == templating.InstanceLevel {
		err = c.addInstance(ctx, facts, key)
	} else if facts.Configuration, err = c.Configuration(ctx, key.Namespace, key.Name); err == nil {
		facts.Instances, err = c.InstancesOf(ctx, key.Namespace, key.Name)
		err = c.permitted("read the devices of the Configuration", err)
	}
	return facts, err
}

// parentFacts collects what is known about an Instance or a Configuration.
func (c *reading) parentFacts(ctx context.Context, level templating.Level, key client.ObjectKey) (*view.Facts, error) {
	facts, err := c.parent(ctx, level, key)
	if err != nil {
		return nil, err
	}
	if err := c.complete(ctx, facts, key.Namespace, facts); err != nil {
		return nil, err
	}
	pods := facts.Pods
	if facts.Instance == nil {
		pods = nil // their Events are on their own pages
	}
	uid, recorded := facts.Recorded()
	about := map[types.UID]bool{uid: true}
	for _, resource := range recorded {
		about[types.UID(resource.UID)] = true
	}
	facts.Events, err = c.eventsOf(ctx, key.Namespace, pods, about)
	return facts, err
}

// addInstance adds an Instance and its Configuration.
func (c *reading) addInstance(ctx context.Context, facts *view.Facts, key client.ObjectKey) error {
	facts.Instance = &v0.Instance{}
	err := c.get(ctx, key, facts.Instance)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("no Instance %q in %s: its device has not been found, or the name is wrong; "+
			"kubectl akri tree lists the Instances", key.Name, Where(key.Namespace))
	}
	if err != nil {
		return fmt.Errorf("read Instance %s: %w", key.Name, err)
	}
	key.Name = facts.Instance.Spec.ConfigurationName
	configuration := v0.Configuration{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err = c.get(ctx, key, &configuration); apierrors.IsNotFound(err) {
		return nil
	}
	facts.Configuration = &configuration
	return c.permitted("read Configuration "+key.Name, err)
}

// podFacts collects what is known about a Pod and the devices that it requests. The
// namespaces of the devices can be others: any Pod can request any device.
func (c *reading) podFacts(ctx context.Context, object *unstructured.Unstructured, made *rendered, notMade error) (*view.Facts, error) {
	pod := &corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, pod); err != nil {
		return nil, err
	}
	pod.ManagedFields = nil
	facts := &view.Facts{Pod: pod, AllPods: true, Now: time.Now()}
	requested := slices.Sorted(maps.Keys(advice.Requested(&pod.Spec)))
	switch {
	case notMade == nil:
		facts.Created = &view.Made{For: originText(made)}
	case len(requested) == 0:
		return nil, notMade // it has nothing to do with Akri
	}
	if len(requested) > 0 {
		if err := c.addRequested(ctx, facts, requested); err != nil {
			return nil, err
		}
	}
	var err error
	facts.Events, err = c.eventsOf(ctx, pod.Namespace, []corev1.Pod{*pod}, map[types.UID]bool{})
	return facts, err
}

// addRequested adds the Instance or the Configuration of each resource that a Pod
// requests. Those in its namespace are preferred to others of the same name.
func (c *reading) addRequested(ctx context.Context, facts *view.Facts, resources []string) error {
	instances, configurations, all, err := c.devices(ctx, facts.Pod.Namespace)
	if err != nil {
		return err
	}
	for _, resource := range resources {
		name := strings.TrimPrefix(resource, v0.Domain+"/")
		one := &view.Facts{Instance: named(instances, name, facts.Pod.Namespace)}
		if one.Instance != nil {
			one.Configuration = named(configurations, one.Instance.Spec.ConfigurationName, one.Instance.Namespace)
			if one.Configuration != nil && one.Configuration.Namespace != one.Instance.Namespace {
				one.Configuration = nil
			}
		} else if one.Configuration = named(configurations, name, facts.Pod.Namespace); one.Configuration != nil {
			one.Instances = slices.DeleteFunc(slices.Clone(instances), func(i v0.Instance) bool {
				return i.Namespace != one.Configuration.Namespace || i.Spec.ConfigurationName != name || i.DeletionTimestamp != nil
			})
		} else {
			if all {
				facts.Unknown = append(facts.Unknown, resource)
			}
			continue
		}
		facts.Requested = append(facts.Requested, one)
	}
	return c.complete(ctx, facts, facts.Pod.Namespace, facts.Requested...)
}

// named returns the object with a name: the one in the preferred namespace, or else the
// first, or nil.
func named[T any, P interface {
	*T
	client.Object
}](items []T, name, preferred string) *T {
	var found *T
	for i := range items {
		switch object := P(&items[i]); {
		case object.GetName() != name:
		case object.GetNamespace() == preferred:
			return &items[i]
		case found == nil:
			found = &items[i]
		}
	}
	return found
}

// addSelected adds the Pods that an object selects if it is a Service.
func (c *reading) addSelected(ctx context.Context, to *view.Made, object *unstructured.Unstructured) error {
	if kind := object.GroupVersionKind(); kind.Group != "" || kind.Kind != "Service" {
		return nil
	}
	selector, _, _ := unstructured.NestedStringMap(object.Object, "spec", "selector")
	if len(selector) == 0 {
		return nil
	}
	var pods corev1.PodList
	err := c.list(ctx, &pods, client.InNamespace(object.GetNamespace()), client.MatchingLabels(selector))
	if apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list Pods: %w", err)
	}
	to.Selector, to.Selected = selector, pods.Items
	return nil
}

// complete adds Akri itself to some of the facts, and the Pods that request their devices.
// Of the facts in the namespace, it reports whether all were searched.
func (c *reading) complete(ctx context.Context, all *view.Facts, namespace string, parts ...*view.Facts) error {
	nodes := map[string]bool{}
	system, err := c.system(ctx, "")
	if err != nil {
		return err
	}
	all.System = system
	for _, part := range parts {
		part.System = system
		for _, device := range part.Devices() {
			for _, node := range device.Spec.Nodes {
				nodes[node] = true
			}
			for _, usage := range device.Spec.DeviceUsage {
				if owner, err := v0.ParseOwner(string(usage)); err == nil && !owner.Free() {
					nodes[owner.Node] = true
				}
			}
		}
	}
	pods, everywhere, err := c.podsNear(ctx, namespace, slices.Sorted(maps.Keys(nodes)))
	all.AllPods = everywhere
	for _, part := range parts {
		part.AllPods = everywhere
		for i := range pods {
			requested := advice.Requested(&pods[i].Spec)
			if slices.ContainsFunc(part.Resources(), func(resource string) bool { return requested[resource] > 0 }) {
				part.Pods = append(part.Pods, pods[i])
			}
		}
	}
	return err
}

// podsNear returns the Pods on some nodes, those on no node yet, and those that have
// failed on others: all that can use or wait for the devices of these nodes. The second
// result reports whether it was permitted to search all namespaces.
func (c *reading) podsNear(ctx context.Context, namespace string, nodes []string) (pods []corev1.Pod, everywhere bool, err error) {
	const maxNodes = 10 // more requests cost more than all Pods
	near := []fields.Selector{fields.OneTermEqualSelector("spec.nodeName", "")}
	elsewhere := []fields.Selector{fields.OneTermEqualSelector("status.phase", string(corev1.PodFailed)),
		fields.OneTermNotEqualSelector("spec.nodeName", "")}
	for _, node := range nodes {
		near = append(near, fields.OneTermEqualSelector("spec.nodeName", node))
		elsewhere = append(elsewhere, fields.OneTermNotEqualSelector("spec.nodeName", node))
	}
	selectors := append(near, fields.AndSelectors(elsewhere...))
	if len(nodes) > maxNodes || c.Cached {
		selectors = []fields.Selector{nil}
	}
	everywhere = true
	for _, selector := range selectors {
		var list corev1.PodList
		all, err := c.everywhere(ctx, "Pods", &list, namespace, &client.ListOptions{FieldSelector: selector})
		if err != nil {
			return nil, false, err
		}
		everywhere = everywhere && all
		pods = append(pods, list.Items...)
	}
	slices.SortFunc(pods, func(a, b corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return pods, everywhere, nil
}

// eventsOf returns the Events of objects of a namespace, and of Pods of any.
func (c *reading) eventsOf(ctx context.Context, namespace string, pods []corev1.Pod, about map[types.UID]bool) ([]corev1.Event, error) {
	namespaces := map[string]bool{namespace: true}
	for i := range pods {
		about[pods[i].UID] = true
		namespaces[pods[i].Namespace] = true
	}
	var found []corev1.Event
	for namespace := range namespaces {
		var events corev1.EventList
		if err := c.permitted("list Events in namespace "+namespace, c.list(ctx, &events, client.InNamespace(namespace))); err != nil {
			return nil, err
		}
		for _, event := range events.Items {
			if event.InvolvedObject.UID != "" && about[event.InvolvedObject.UID] {
				found = append(found, event)
			}
		}
	}
	return found, nil
}

// kindOf returns the kind of an object that only a name is given of.
func (c *reading) kindOf(ctx context.Context, namespace, name string) (string, error) {
	candidates, err := c.existing(ctx, namespace, name, map[string]client.Object{
		"instance": &v0.Instance{}, "configuration": &v0.Configuration{},
	})
	if err != nil {
		return "", err
	}
	if len(candidates) == 0 {
		if candidates, err = c.existing(ctx, namespace, name, map[string]client.Object{"pod": &corev1.Pod{}}); err != nil {
			return "", err
		}
		recorded, err := c.recorded(ctx, namespace, name)
		if err != nil {
			return "", err
		}
		candidates = append(candidates, recorded...)
		slices.Sort(candidates)
		candidates = slices.Compact(candidates)
	}
	switch len(candidates) {
	case 0:
		return "", fmt.Errorf("no Instance, Configuration or Pod %q in %s, and no object that Akri created: the device has not been found, "+
			"or the name is wrong; kubectl akri tree lists the names", name, Where(namespace))
	case 1:
		return candidates[0], nil
	}
	for i, kind := range candidates {
		candidates[i] = kind + "/" + name
	}
	return "", fmt.Errorf("%q is the name of %d objects: specify one of %s", name, len(candidates), strings.Join(candidates, ", "))
}

// existing returns the kinds that have a readable object with the name.
func (c *reading) existing(ctx context.Context, namespace, name string, kinds map[string]client.Object) ([]string, error) {
	var found []string
	for kind, object := range kinds {
		err := c.get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
		switch {
		case err == nil:
			found = append(found, kind)
		case !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err):
			return nil, fmt.Errorf("read %s %s: %w", kind, name, err)
		}
	}
	slices.Sort(found)
	return found, nil
}

// recorded returns the kinds of the objects with that name which the controller has
// created, according to the Instances and Configurations of the namespace.
func (c *reading) recorded(ctx context.Context, namespace, name string) ([]string, error) {
	instances, configurations, _, err := c.devices(ctx, namespace, client.InNamespace(namespace))
	if err != nil {
		return nil, err
	}
	var resources []v0.ResourceStatus
	for i := range instances {
		resources = append(resources, instances[i].Status.Resources...)
	}
	for i := range configurations {
		resources = append(resources, configurations[i].Status.Resources...)
	}
	var kinds []string
	for _, resource := range resources {
		if resource.Name == name && cmp.Or(resource.Namespace, namespace) == namespace {
			kinds = append(kinds, strings.ToLower(schema.GroupKind{Group: resource.Group, Kind: resource.Kind}.String()))
		}
	}
	return kinds, nil
}

// originText names what an object was created for.
func originText(made *rendered) string {
	if made.dependent != nil {
		return fmt.Sprintf("%s, by %s", made.parent, inventory.RefOfObject(made.object))
	}
	return made.parent.String()
}
