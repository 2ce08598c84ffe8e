package facts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/cmd/kubectl-akri/view"
)

// Namespace is where Akri is installed unless someone chose another namespace.
const Namespace = "akri-system"

// Reader reads from an API server, or from caches of its objects. Its methods can run at the
// same time.
type Reader struct {
	// API gets and lists objects. Unstructured ones need their managedFields, so they should
	// not come from caches.
	API client.Reader
	// Mapper knows the kinds by their names, plurals and short names.
	Mapper meta.RESTMapper
	// Cached reports whether API has caches, which do not know fields.
	Cached bool
}

// Selection says which Configurations are read.
type Selection struct {
	Namespace string          // or "" for all
	Name      string          // or "" for all
	Labels    labels.Selector // or nil for all
}

// Forest returns Configurations with their Instances.
func (r Reader) Forest(ctx context.Context, chosen Selection) (view.Forest, error) {
	var configurations v0.ConfigurationList
	options := client.ListOptions{Namespace: chosen.Namespace, LabelSelector: chosen.Labels}
	if err := r.list(ctx, &configurations, &options); err != nil {
		return nil, fmt.Errorf("list Configurations: %w", err)
	}
	var instances v0.InstanceList
	if err := r.list(ctx, &instances, client.InNamespace(chosen.Namespace)); err != nil {
		return nil, fmt.Errorf("list Instances: %w", err)
	}
	configurations.Items = slices.DeleteFunc(configurations.Items, func(configuration v0.Configuration) bool {
		return chosen.Name != "" && configuration.Name != chosen.Name
	})
	return view.NewForest(configurations.Items, instances.Items), nil
}

// Configuration returns a Configuration.
func (r Reader) Configuration(ctx context.Context, namespace, name string) (*v0.Configuration, error) {
	var configuration v0.Configuration
	err := r.get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &configuration)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("no Configuration %q in %s", name, Where(namespace))
	}
	if err != nil {
		return nil, fmt.Errorf("read Configuration %s: %w", name, err)
	}
	return &configuration, nil
}

// InstancesOf returns a Configuration's Instances that are not being deleted, sorted by name.
func (r Reader) InstancesOf(ctx context.Context, namespace, configuration string) ([]v0.Instance, error) {
	var list v0.InstanceList
	if err := r.list(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list Instances: %w", err)
	}
	return slices.DeleteFunc(list.Items, func(i v0.Instance) bool {
		return i.Spec.ConfigurationName != configuration || i.DeletionTimestamp != nil
	}), nil
}

// Where names a namespace, which is "" for all of them.
func Where(namespace string) string {
	if namespace == "" {
		return "any namespace"
	}
	return fmt.Sprintf("namespace %q", namespace)
}

// get reads an object without managedFields, which nobody wants to read.
func (r Reader) get(ctx context.Context, key client.ObjectKey, object client.Object) error {
	err := r.API.Get(ctx, key, object)
	object.SetManagedFields(nil)
	return err
}

// list lists objects without managedFields, sorted by namespace and name, which caches do not.
func (r Reader) list(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := r.API.List(ctx, list, options...); err != nil {
		return err
	}
	items, err := meta.ExtractList(list)
	for _, item := range items {
		item.(client.Object).SetManagedFields(nil)
	}
	slices.SortFunc(items, func(a, b runtime.Object) int {
		x, y := a.(client.Object), b.(client.Object)
		return cmp.Or(cmp.Compare(x.GetNamespace(), y.GetNamespace()), cmp.Compare(x.GetName(), y.GetName()))
	})
	return errors.Join(err, meta.SetList(list, items))
}

// reading is one call of a method of a Reader, and what it may not read.
type reading struct {
	Reader
	unread []string
}

// permitted returns an error if an action has failed. If it is not permitted, that is noted
// instead, and the call goes on without the result.
func (c *reading) permitted(action string, err error) error {
	if err == nil || apierrors.IsForbidden(err) {
		note := "no permission to " + action + ", so a cause may be missing (the ClusterRole akri-diagnose grants it)"
		if err != nil && !slices.Contains(c.unread, note) {
			c.unread = append(c.unread, note)
		}
		return nil
	}
	return fmt.Errorf("%s: %w", action, err)
}

// everywhere lists objects of all namespaces if permitted, or else of one, and reports which.
func (c *reading) everywhere(
	ctx context.Context, things string, list client.ObjectList, namespace string, options ...client.ListOption,
) (bool, error) {
	err := c.list(ctx, list, options...)
	if !apierrors.IsForbidden(err) {
		return true, c.permitted("list "+things, err)
	}
	others := err
	if err = c.list(ctx, list, append(options, client.InNamespace(namespace))...); err == nil {
		return false, c.permitted("list "+things+" in other namespaces", others)
	}
	return false, c.permitted("list "+things, err)
}

// devices lists the Instances and Configurations of all namespaces if permitted, or else of
// one, and reports which.
func (c *reading) devices(ctx context.Context, namespace string, options ...client.ListOption) (
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
