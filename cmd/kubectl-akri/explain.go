package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/cmd/kubectl-akri/view"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/templates"
	"akri.sh/akri/templating"
)

func newExplain(streams cli.Streams, a access) *cobra.Command {
	var output cli.Output
	command := &cobra.Command{
		Use:   "explain (KIND NAME | KIND/NAME)",
		Short: "Show which template and values an object was rendered from",
		Example: `  kubectl akri explain deployment akri-debug-echo-8120fe
  kubectl akri explain svc/akri-debug-echo-8120fe-svc
  kubectl akri explain pod/akri-debug-echo-8120fe-6c8c97c77b-fl2x2  # of a Deployment`,
		Args: cobra.RangeArgs(1, 2),
	}
	command.RunE = func(command *cobra.Command, args []string) error {
		kind, name, found := strings.Cut(strings.Join(args, "/"), "/")
		if !found || kind == "" || name == "" || strings.Contains(name, "/") {
			return cli.Usage(command, errors.New("specify an object: KIND NAME or KIND/NAME, as in pod/door-cam"))
		}
		return a.explain(command.Context(), streams, output, kind, name)
	}
	output.AddFlag(command)
	return command
}

func (a access) explain(ctx context.Context, streams cli.Streams, output cli.Output, kind, name string) error {
	api, err := a.connect(streams.Err, nil)
	if err != nil {
		return err
	}
	mapping, err := api.mapping(kind)
	if err != nil {
		return err
	}
	object, err := api.read(ctx, mapping, api.namespace, name)
	if err != nil {
		return err
	}
	explanation, err := api.explain(ctx, object)
	if err != nil {
		return err
	}
	return output.Print(streams.Out, explanation, explanation.Text)
}

// mapping resolves a resource type as kubectl does: a resource name (singular or
// plural), a short name or a kind, optionally with version and group.
func (c *cluster) mapping(name string) (*meta.RESTMapping, error) {
	full, resource := schema.ParseResourceArg(name)
	kind, err := c.mapper.KindFor(resource.WithVersion(""))
	if full != nil && meta.IsNoMatchError(err) {
		kind, err = c.mapper.KindFor(*full)
	}
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("the API server does not have a resource type %q", name)
	}
	if err != nil {
		return nil, fmt.Errorf("discover the kinds of the API server: %w", err)
	}
	return c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
}

// read gets an object of any kind.
func (c *cluster) read(ctx context.Context, mapping *meta.RESTMapping, namespace, name string) (*unstructured.Unstructured, error) {
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		namespace = ""
	}
	return c.dynamic.Resource(mapping.Resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
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
func (c *cluster) origin(ctx context.Context, object *unstructured.Unstructured) (*rendered, error) {
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
		mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return nil, fmt.Errorf("find the owner of %s: %w", inventory.RefOfObject(object), err)
		}
		if object, err = c.read(ctx, mapping, object.GetNamespace(), owner.Name); err != nil {
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

// explain returns the template and the values that an object was rendered from.
func (c *cluster) explain(ctx context.Context, object *unstructured.Unstructured) (*view.Explanation, error) {
	if object.GroupVersionKind().Group == v0.Domain {
		return nil, fmt.Errorf("%s is not created from a template: use kubectl akri tree and kubectl akri why", inventory.RefOfObject(object))
	}
	found, err := c.origin(ctx, object)
	if err != nil {
		return nil, err
	}
	e := &view.Explanation{Object: inventory.RefOfObject(found.object).String(), Notes: found.notes,
		OtherManagers: view.OtherManagers(found.object.GetManagedFields())}
	if found.dependent != nil {
		e.Dependent = inventory.RefOfObject(found.dependent).String()
	}
	level := found.parent.Level
	parent, err := c.parent(ctx, level, found.parent.NamespacedName)
	if err != nil {
		return nil, fmt.Errorf("find what %s was created for: %w", e.Object, err)
	}
	e.Notes = append(e.Notes, c.notes...)
	if parent.Instance != nil {
		e.Instance = parent.Instance.Name
	}
	configuration := parent.Configuration
	if configuration == nil {
		return nil, fmt.Errorf("no Configuration %q in %s", parent.Instance.Spec.ConfigurationName, where(found.parent.Namespace))
	}
	e.Configuration, e.Generation = configuration.Namespace+"/"+configuration.Name, configuration.Generation
	_, recorded := parent.Recorded()
	e.State = stateOf(found.object, recorded)
	compiled := templates.Compile(configuration, allowAll(configuration))
	if entry, known := inventory.Index(recorded)[inventory.RefOfObject(found.object)]; known {
		e.Template = compiled.Name(level, int(entry.Template))
	}
	if len(compiled.Problems) > 0 {
		e.Notes = append(e.Notes, append([]string{"the templates have errors; the object is unchanged:"}, messages(compiled.Problems)...)...)
		return e, nil
	}
	set, values := compiled.Group, templates.GroupValues(configuration, parent.Instances)
	if parent.Instance != nil {
		set, values = compiled.Instance, templates.InstanceValues(configuration, parent.Instance)
	}
	addTemplate(e, found.object, compiled, set, values, configuration)
	return e, nil
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
