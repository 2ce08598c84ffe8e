package facts

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/cmd/kubectl-akri/view"
	"akri.sh/akri/controller/confine"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/templates"
	"akri.sh/akri/templating"
)

// Explain returns the template and the values that an object was rendered from. Its kind is a
// resource type as kubectl knows it.
func (r Reader) Explain(ctx context.Context, resourceType, namespace, name string) (*view.Explanation, error) {
	kind, err := r.kind(resourceType)
	if err != nil {
		return nil, err
	}
	object, err := r.object(ctx, kind, namespace, name)
	if err != nil {
		return nil, err
	}
	if kind.Group == v0.Domain {
		return nil, fmt.Errorf("%s is not created from a template: use kubectl akri tree and kubectl akri why", inventory.RefOfObject(object))
	}
	found, err := r.origin(ctx, object)
	if err != nil {
		return nil, err
	}
	e := &view.Explanation{Object: inventory.RefOfObject(found.object).String(), Notes: found.notes,
		OtherManagers: view.OtherManagers(found.object.GetManagedFields())}
	if found.dependent != nil {
		e.Dependent = inventory.RefOfObject(found.dependent).String()
	}
	level, c := found.parent.Level, reading{Reader: r}
	parent, err := c.parent(ctx, level, found.parent.NamespacedName)
	if err != nil {
		return nil, fmt.Errorf("find what %s was created for: %w", e.Object, err)
	}
	e.Notes = append(e.Notes, c.unread...)
	if parent.Instance != nil {
		e.Instance = parent.Instance.Name
	}
	configuration := parent.Configuration
	if configuration == nil {
		return nil, fmt.Errorf("no Configuration %q in %s", parent.Instance.Spec.ConfigurationName, Where(found.parent.Namespace))
	}
	e.Configuration, e.Generation = configuration.Namespace+"/"+configuration.Name, configuration.Generation
	_, recorded := parent.Recorded()
	e.State = stateOf(found.object, recorded)
	compiled := templates.Compile(configuration, AllowAll(configuration))
	if entry, known := inventory.Index(recorded)[inventory.RefOfObject(found.object)]; known {
		e.Template = compiled.Name(level, int(entry.Template))
	}
	if len(compiled.Problems) > 0 {
		e.Notes = append(e.Notes, "the templates have errors; the object is unchanged:")
		for _, problem := range compiled.Problems {
			e.Notes = append(e.Notes, problem.Error())
		}
		return e, nil
	}
	set, values := compiled.Group, templates.GroupValues(configuration, parent.Instances)
	if parent.Instance != nil {
		set, values = compiled.Instance, templates.InstanceValues(configuration, parent.Instance)
	}
	addTemplate(e, found.object, compiled, set, values, configuration)
	return e, nil
}

// kind resolves a resource type as kubectl does: a resource name (singular or plural), a short
// name or a kind, optionally with version and group.
func (r Reader) kind(resourceType string) (schema.GroupVersionKind, error) {
	full, resource := schema.ParseResourceArg(resourceType)
	kind, err := r.Mapper.KindFor(resource.WithVersion(""))
	if full != nil && meta.IsNoMatchError(err) {
		kind, err = r.Mapper.KindFor(*full)
	}
	if meta.IsNoMatchError(err) {
		return kind, fmt.Errorf("the API server does not have a resource type %q", resourceType)
	}
	if err != nil {
		return kind, fmt.Errorf("discover the kinds of the API server: %w", err)
	}
	return kind, nil
}

// object gets an object of any kind with its managedFields.
func (r Reader) object(ctx context.Context, kind schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object, r.API.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
}

// rendered is an object that was created from a template.
type rendered struct {
	object *unstructured.Unstructured
	parent ownership.Parent
	// dependent is the requested object if it is a dependent of object, or nil.
	dependent *unstructured.Unstructured
	notes     []string
}

// origin follows the owners of an object to the one that was created from a template.
func (r Reader) origin(ctx context.Context, object *unstructured.Unstructured) (*rendered, error) {
	const maxOwners = 5 // a Pod of a Job of a CronJob has two
	requested := object
	for range maxOwners {
		if parent, notes, found := parentOf(object); found {
			result := &rendered{object: object, parent: parent, notes: notes}
			if object != requested {
				result.dependent = requested
			}
			return result, nil
		}
		owner := metav1.GetControllerOf(object)
		if owner == nil {
			break
		}
		kind := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)
		var err error
		if object, err = r.object(ctx, kind, object.GetNamespace(), owner.Name); err != nil {
			return nil, fmt.Errorf("read the owner %s %s: %w", owner.Kind, owner.Name, err)
		}
	}
	w := "neither it nor its owners are owned by an Instance or a Configuration or have the label " +
		v0.LabelManagedBy + "=" + v0.ManagedBy
	if managers := view.OtherManagers(requested.GetManagedFields()); len(managers) > 0 {
		w += "; its fields were set by " + managers[0].Name
	}
	return nil, fmt.Errorf("%s was not created by Akri: %s", inventory.RefOfObject(requested), w)
}

// parentOf returns the parent of an object by its owner reference, or else by its labels.
func parentOf(object *unstructured.Unstructured) (parent ownership.Parent, notes []string, found bool) {
	owner := metav1.GetControllerOf(object)
	if owner != nil && schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).Group == v0.Domain {
		if owner.Kind == v0.ConfigurationKind.Kind {
			parent.Level = templating.ConfigurationLevel
		}
		parent.Name, parent.Namespace = owner.Name, object.GetNamespace()
		return parent, nil, true
	}
	parent = ownership.Read(object).Parent
	if object.GetLabels()[v0.LabelManagedBy] != v0.ManagedBy || parent.Name == "" {
		return parent, nil, false
	}
	if owner != nil {
		notes = append(notes, fmt.Sprintf("its labels are Akri's, but it is owned by %s %s", owner.Kind, owner.Name))
	}
	return parent, notes, true
}

// addTemplate adds the template that an object is rendered from, and its expressions.
func addTemplate(
	e *view.Explanation, object *unstructured.Unstructured,
	compiled *templates.Templates, set *templating.Set, values templating.Values, configuration *v0.Configuration,
) {
	objects, diagnostics := set.Render(values)
	for _, candidate := range objects {
		content := &unstructured.Unstructured{Object: candidate.Content}
		if content.GroupVersionKind().GroupKind() != object.GroupVersionKind().GroupKind() || content.GetName() != object.GetName() {
			continue
		}
		e.Template = compiled.Name(set.Level(), candidate.Origin.Index)
		e.Element = candidate.Origin.Element
		e.SetExpressions(set.Explain(values, candidate.Origin), configuration, object.GetKind())
		e.SetDirectives(candidate.Directives)
		return
	}
	e.Notes = append(e.Notes, "no template renders an object of this name now; it was created by an earlier generation or from other values")
	for _, diagnostic := range diagnostics {
		e.Notes = append(e.Notes, diagnostic.Error())
	}
}

// stateOf returns the state of an object according to its parent's status.
func stateOf(object *unstructured.Unstructured, recorded []v0.ResourceStatus) string {
	entry, known := inventory.Index(recorded)[inventory.RefOfObject(object)]
	switch {
	case !known:
		return "not in the list of objects that the controller created"
	case entry.UID != "" && entry.UID != string(object.GetUID()):
		return "not the object the controller created, but another with the same name"
	}
	return view.ResourceState(entry)
}

// AllowAll returns a policy that allows all kinds of a Configuration. It is for
// objects that exist already; the controller's own policy does not matter for them.
func AllowAll(configuration *v0.Configuration) confine.Policy {
	policy := confine.Policy{ClusterScoped: true, OtherNamespaces: true}
	for _, list := range [][]v0.BrokerResource{configuration.Spec.InstanceBrokerResources, configuration.Spec.ConfigurationBrokerResources} {
		for _, template := range list {
			kind := (&unstructured.Unstructured{Object: template.Object}).GroupVersionKind()
			policy.Kinds = append(policy.Kinds, kind.GroupKind())
		}
	}
	return policy
}
