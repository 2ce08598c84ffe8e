package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	builtin "k8s.io/client-go/kubernetes/scheme"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/cmd/kubectl-akri/facts"
	"akri.sh/akri/cmd/kubectl-akri/manifest"
	"akri.sh/akri/cmd/kubectl-akri/view"
	"akri.sh/akri/controller/apply"
	"akri.sh/akri/controller/confine"
	"akri.sh/akri/controller/templates"
)

type rbacOptions struct {
	access
	files                      []string
	controller, webhook, agent accountFlag
	api                        *cluster // nil without a cluster
	unasked                    error    // why the cluster does not say what it grants
}

// accountFlag is the value of a flag that names a ServiceAccount as NAMESPACE/NAME.
type accountFlag struct{ types.NamespacedName }

func (a *accountFlag) Type() string { return "string" }

func (a *accountFlag) Set(value string) (err error) {
	var found bool
	if a.Namespace, a.Name, found = strings.Cut(value, "/"); !found {
		err = errors.New("use NAMESPACE/NAME")
	}
	return err
}

func newRBAC(streams cli.Streams, a access) *cobra.Command {
	o := rbacOptions{access: a}
	command := &cobra.Command{
		Use:   "rbac (-f FILE... | CONFIGURATION)",
		Short: "Print the roles that a Configuration lacks",
		Long: `Print the roles that a Configuration lacks: those that grant something that the cluster
does not grant yet. The output is ready for kubectl apply.

The roles are a ClusterRole that is aggregated to the controller's and, for a
Configuration with serviceAccountName, a Role for that ServiceAccount and one that
lets the controller and the admission webhook impersonate it. A Role for the Secrets
and ConfigMaps in its discoveryProperties lets agents read them, on every node.

To ask the API server what is granted, you need permission to create subjectaccessreviews,
which the ClusterRole akri-diagnose grants. Without it, or with -f and no cluster, all
roles are printed. Kinds that the cluster does not have are left out; the exit code is
then 1.`,
		Example: `  kubectl akri rbac -f configuration.yaml
  kubectl akri rbac akri-shifu | kubectl apply -f -`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: o.completion(&v0.ConfigurationList{}),
	}
	command.RunE = func(command *cobra.Command, args []string) error {
		if (len(args) > 0) == (len(o.files) > 0) {
			return cli.Usage(command, errors.New("specify a Configuration: -f FILE, or the NAME of one in the cluster"))
		}
		return o.run(command, streams, args)
	}
	account := func(to *accountFlag, flag, name, of string) {
		to.Namespace, to.Name = facts.Namespace, name
		command.Flags().Var(to, flag, "ServiceAccount of the "+of+", as `NAMESPACE/NAME`")
	}
	account(&o.controller, "controller", "akri-controller", "controller")
	account(&o.webhook, "webhook", "akri-webhook", "admission webhook")
	account(&o.agent, "agent", agentName, "agents")
	command.Flags().StringArrayVarP(&o.files, "filename", "f", nil, "`file` or directory with Configurations; - reads standard input")
	return command
}

func (o *rbacOptions) run(command *cobra.Command, streams cli.Streams, names []string) error {
	if o.api, o.unasked = o.connect(streams.Err, nil); o.unasked != nil && len(names) > 0 {
		return o.unasked
	}
	configurations, err := o.configurations(command, streams, names)
	if err != nil {
		return err
	}
	granted := func(account types.NamespacedName, right authorizationv1.ResourceAttributes) bool {
		review := authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: apply.Username(account), Groups: apply.Groups(account), ResourceAttributes: &right,
		}}
		if o.unasked == nil {
			o.unasked = o.api.Create(command.Context(), &review)
		}
		return review.Status.Allowed && !review.Status.Denied
	}
	var text strings.Builder
	var problems []error
	for _, configuration := range configurations {
		name, before := configuration.Namespace+"/"+configuration.Name, len(problems)
		for _, problem := range templates.Compile(configuration, confine.Policy{}).Problems {
			if problem.Reason != v0.ReasonRefused {
				problems = append(problems, fmt.Errorf("in Configuration %s: %w", name, problem))
				continue
			}
			fmt.Fprintf(streams.Err, "note: %s: %v\n", name, problem)
		}
		rights := view.Rights{
			Configuration: configuration, Controller: o.controller.NamespacedName, Webhook: o.webhook.NamespacedName,
			Agent: o.agent.NamespacedName, Granted: granted,
		}
		for _, kind := range templates.Compile(configuration, facts.AllowAll(configuration)).Kinds() {
			resource, err := o.resource(kind)
			if err != nil {
				problems = append(problems, fmt.Errorf("in Configuration %s: %w", name, err))
				continue
			}
			rights.Resources = append(rights.Resources, resource)
		}
		roles := view.Roles(rights)
		if roles == "" && len(problems) == before {
			fmt.Fprintf(streams.Err, "note: %s needs no roles: the cluster grants all that it uses\n", name)
		}
		text.WriteString(roles)
	}
	if o.unasked != nil {
		fmt.Fprintf(streams.Err, "note: these are all the roles that are needed, including those that the cluster already grants: "+
			"could not ask it, for which the ClusterRole akri-diagnose grants permission: %v\n", o.unasked)
	}
	if _, err := fmt.Fprint(streams.Out, text.String()); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return errors.Join(problems...)
}

// configurations returns the Configurations in the files, or the one in the cluster.
func (o *rbacOptions) configurations(command *cobra.Command, streams cli.Streams, names []string) ([]*v0.Configuration, error) {
	namespace, err := o.selectedNamespace()
	if err != nil {
		return nil, err
	}
	if len(names) > 0 {
		configuration, err := o.api.facts.Configuration(command.Context(), namespace, names[0])
		return []*v0.Configuration{configuration}, err
	}
	given, err := manifest.Configurations(command, streams, o.files)
	if err != nil {
		return nil, err
	}
	var configurations []*v0.Configuration
	for _, object := range given {
		configuration, err := decode[v0.Configuration](object)
		if err != nil {
			return nil, fmt.Errorf("read the Configuration: %w: run kubectl akri lint to find the place", err)
		}
		if configuration.Namespace == "" {
			configuration.Namespace = namespace
		}
		configurations = append(configurations, configuration)
	}
	return configurations, nil
}

// resource returns the resource of a kind. Kinds built into Kubernetes need no cluster.
func (o *rbacOptions) resource(kind schema.GroupVersionKind) (schema.GroupResource, error) {
	if builtin.Scheme.Recognizes(kind) {
		plural, _ := meta.UnsafeGuessKindToResource(kind) // a test checks that the guess is right for all of them
		return plural.GroupResource(), nil
	}
	if o.api == nil {
		return schema.GroupResource{}, fmt.Errorf("kind %s is not built into Kubernetes and needs a cluster to look it up", kind.GroupKind())
	}
	mapping, err := o.api.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return schema.GroupResource{}, fmt.Errorf("the cluster does not have kind %s in %q: install its CustomResourceDefinition", kind.Kind,
			kind.GroupVersion())
	}
	if err != nil {
		return schema.GroupResource{}, fmt.Errorf("look up kind %s: %w", kind, err)
	}
	return mapping.Resource.GroupResource(), nil
}
