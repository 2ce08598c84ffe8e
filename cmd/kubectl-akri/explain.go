package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/cmd/kubectl-akri/offline"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/templates"
	"akri.sh/akri/controller/view"
	"akri.sh/akri/templating"
)

type explainOptions struct {
	access
	output string
}

func newExplain(streams offline.Streams) *cobra.Command {
	var o explainOptions
	command := &cobra.Command{
		Use:   "explain (KIND NAME | KIND/NAME)",
		Short: "Say from which template, and which values, an object was made",
		Example: `  kubectl akri explain deployment akri-debug-echo-8120fe
  kubectl akri explain svc/akri-debug-echo-8120fe-svc
  kubectl akri explain pod/akri-debug-echo-8120fe-6c8c97c77b-fl2x2  # of a Deployment of Akri's`,
		Args: cobra.RangeArgs(1, 2),
	}
	command.RunE = func(command *cobra.Command, args []string) error {
		kind, name, found := strings.Cut(strings.Join(args, "/"), "/")
		if !found || kind == "" || name == "" || strings.Contains(name, "/") {
			return offline.Misused(command, errors.New("say which object: KIND NAME or KIND/NAME, as in pod/door-cam"))
		}
		if o.output != "" && o.output != "json" && o.output != "yaml" {
			return offline.Misused(command, fmt.Errorf("-o %s: write json or yaml", o.output))
		}
		return o.run(command.Context(), streams, kind, name)
	}
	o.addFlags(command)
	command.Flags().StringVarP(&o.output, "output", "o", "", "`format` json or yaml, for programs")
	return command
}

func (o *explainOptions) run(ctx context.Context, streams offline.Streams, kind, name string) error {
	namespace, err := o.home()
	if err != nil {
		return err
	}
	api, err := o.connect(streams.Err, nil)
	if err != nil {
		return err
	}
	mapping, err := api.mapping(kind)
	if err != nil {
		return err
	}
	object, err := api.read(ctx, mapping, namespace, name)
	if err != nil {
		return err
	}
	explanation, err := api.explain(ctx, object)
	if err != nil {
		return err
	}
	if o.output == "" {
		return view.Explain(streams.Out, *explanation)
	}
	text, err := json.MarshalIndent(explanation, "", "  ")
	if err == nil && o.output == "yaml" {
		text, err = yaml.JSONToYAML(text)
	}
	if err != nil {
		return fmt.Errorf("write as %s: %w", o.output, err)
	}
	_, err = fmt.Fprintln(streams.Out, strings.TrimSuffix(string(text), "\n"))
	return err
}

// mapping finds a kind by what people call it: its resource, singular or plural, a
// short name, or the kind itself, with version and group if need be.
func (c *cluster) mapping(name string) (*meta.RESTMapping, error) {
	full, resource := schema.ParseResourceArg(name)
	if full != nil {
		if kind, err := c.mapper.KindFor(*full); err == nil {
			return c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		}
	}
	kind, err := c.mapper.KindFor(resource.WithVersion(""))
	if err == nil {
		return c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	}
	if !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("ask the API server for its kinds: %w", err)
	}
	fullKind, groupKind := schema.ParseKindArg(name)
	if fullKind != nil {
		if mapping, err := c.mapper.RESTMapping(fullKind.GroupKind(), fullKind.Version); err == nil {
			return mapping, nil
		}
	}
	mapping, err := c.mapper.RESTMapping(groupKind)
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("the API server has no resource type %q", name)
	}
	return mapping, err
}

// read reads an object of any kind.
func (c *cluster) read(ctx context.Context, mapping *meta.RESTMapping, namespace, name string) (*unstructured.Unstructured, error) {
	var from dynamic.ResourceInterface = c.dynamic.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		from = c.dynamic.Resource(mapping.Resource).Namespace(namespace)
	}
	return from.Get(ctx, name, metav1.GetOptions{})
}

// made is an object that a template of Akri's asks for, and whose it is.
type made struct {
	object *unstructured.Unstructured
	parent ownership.Parent
	// asked is the object from which its owners led here; nil if it is this one.
	asked *unstructured.Unstructured
	notes []string
}

// origin follows the owners of an object to one that was made from a template.
func (c *cluster) origin(ctx context.Context, object *unstructured.Unstructured) (*made, error) {
	const most = 5 // a Pod of a Job of a CronJob is three
	asked := object
	for range most {
		if parent, notes, found := parentOf(object); found {
			result := &made{object: object, parent: parent, notes: notes}
			if object != asked {
				result.asked = asked
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
			return nil, fmt.Errorf("find the owner of %s: %w", refOf(object), err)
		}
		if object, err = c.read(ctx, mapping, object.GetNamespace(), owner.Name); err != nil {
			return nil, fmt.Errorf("read the owner %s %s: %w", owner.Kind, owner.Name, err)
		}
	}
	why := "neither it nor what owns it is owned by an Instance or a Configuration, or has the label " + v0.LabelManagedBy + "=" + v0.ManagedBy
	if managers := view.Others(asked.GetManagedFields()); len(managers) > 0 {
		why += "; its fields were written by " + managers[0].Name
	}
	return nil, fmt.Errorf("%s was not made by Akri: %s", refOf(asked), why)
}

// parentOf judges whose an object is, by owner reference or else by labels.
func parentOf(object *unstructured.Unstructured) (parent ownership.Parent, notes []string, found bool) {
	owner := metav1.GetControllerOf(object)
	if owner != nil && schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).Group == v0.Domain {
		if owner.Kind == v0.ConfigurationKind.Kind {
			parent.Level = templating.ConfigurationLevel
		}
		parent.Name, parent.Namespace = owner.Name, object.GetNamespace()
		return parent, nil, true
	}
	parent = ownership.Of(object).Parent
	if object.GetLabels()[v0.LabelManagedBy] != v0.ManagedBy || parent.Name == "" {
		return parent, nil, false
	}
	if owner != nil {
		notes = append(notes, fmt.Sprintf("by its labels it is Akri's, but %s %s owns it", owner.Kind, owner.Name))
	}
	return parent, notes, true
}

func refOf(object *unstructured.Unstructured) inventory.Ref {
	kind := object.GroupVersionKind()
	return inventory.Ref{Group: kind.Group, Kind: kind.Kind, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// explain says where an object comes from.
func (c *cluster) explain(ctx context.Context, object *unstructured.Unstructured) (*view.Explanation, error) {
	if object.GroupVersionKind().Group == v0.Domain {
		return nil, fmt.Errorf("%s is not made from a template: see kubectl akri tree and kubectl akri why", refOf(object))
	}
	found, err := c.origin(ctx, object)
	if err != nil {
		return nil, err
	}
	e := &view.Explanation{Object: refOf(found.object).String(), Notes: found.notes, Others: view.Others(found.object.GetManagedFields())}
	if found.asked != nil {
		e.Asked = refOf(found.asked).String()
	}
	level, recorded := found.parent.Level, []v0.ResourceStatus(nil)
	name := found.parent.Name
	var instance v0.Instance
	if level == templating.InstanceLevel {
		if err := c.Get(ctx, client.ObjectKey(found.parent.NamespacedName), &instance); err != nil {
			return nil, fmt.Errorf("read Instance %s, which %s was made for: %w", found.parent.NamespacedName, e.Object, err)
		}
		recorded, name = instance.Status.Resources, instance.Spec.ConfigurationName
		e.Instance = instance.Name
	}
	configuration, err := c.configuration(ctx, found.parent.Namespace, name)
	if err != nil {
		return nil, err
	}
	e.Configuration, e.Generation = configuration.Namespace+"/"+configuration.Name, configuration.Generation
	if level == templating.ConfigurationLevel {
		recorded = configuration.Status.Resources
	}
	compiled := templates.Compile(configuration, allowAll(configuration))
	entry, known := inventory.Index(recorded)[refOf(found.object)]
	e.State = stateOf(found.object, entry, known)
	if known {
		e.Template = compiled.Name(level, int(entry.Template))
	}
	if len(compiled.Problems) > 0 {
		e.Notes = append(e.Notes, append([]string{"the templates are wrong; the object is as it was before:"}, messages(compiled.Problems)...)...)
		return e, nil
	}
	set, values := compiled.Instance, templates.InstanceValues(configuration, &instance)
	if level == templating.ConfigurationLevel {
		instances, err := c.instancesOf(ctx, configuration.Namespace, configuration.Name)
		if err != nil {
			return nil, err
		}
		set, values = compiled.Group, templates.GroupValues(configuration, instances)
	}
	template(e, found.object, compiled, set, values, configuration)
	return e, nil
}

// template adds what is known of the template that makes an object.
func template(e *view.Explanation, object *unstructured.Unstructured, compiled *templates.Templates, set *templating.Set, values templating.Values, configuration *v0.Configuration) {
	rendered, diagnostics := set.Render(values)
	for _, candidate := range rendered {
		same := &unstructured.Unstructured{Object: candidate.Content}
		if same.GroupVersionKind().GroupKind() != object.GroupVersionKind().GroupKind() || same.GetName() != object.GetName() {
			continue
		}
		e.Template = compiled.Name(set.Level(), candidate.Origin.Index)
		e.Element = candidate.Origin.Element
		e.Fields = view.Fields(set.Explain(values, candidate.Origin), configuration, object.GetKind())
		e.Directives = view.Directives(candidate.Directives)
		return
	}
	e.Notes = append(e.Notes, "no template makes an object of this name now; it is the work of an earlier generation or of other values")
	for _, diagnostic := range diagnostics {
		e.Notes = append(e.Notes, diagnostic.Error())
	}
}

func stateOf(object *unstructured.Unstructured, entry v0.ResourceStatus, known bool) string {
	switch {
	case !known:
		return "not in the list of what the controller has made"
	case entry.UID != "" && entry.UID != string(object.GetUID()):
		return "another object of this name than the one that the controller has made"
	case entry.Ready && entry.Reason != "":
		return "ready: " + entry.Reason
	case entry.Ready:
		return "ready"
	}
	return "not ready: " + entry.Reason
}
