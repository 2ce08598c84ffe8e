package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/apply"
	"akri.sh/akri/controller/confine"
)

// access holds kubectl's flags that select the cluster, the user and the namespace.
type access struct {
	clientcmd.ClientConfig
	set   *pflag.FlagSet
	flags *clientcmd.ConfigOverrides
}

func newAccess() access {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	flags.StringVar(&rules.ExplicitPath, "kubeconfig", "", "Path to the kubeconfig file (default: KUBECONFIG, else ~/.kube/config)")
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.ClusterOverrideFlags.APIServer.ShortName = "s"
	// Kubernetes has had no basic authentication since v1.19, and kubectl no such flags.
	names.AuthOverrideFlags.Username.LongName, names.AuthOverrideFlags.Password.LongName = "", ""
	overrides := &clientcmd.ConfigOverrides{}
	clientcmd.BindOverrideFlags(overrides, flags, names)
	return access{clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides), flags, overrides}
}

// selectedNamespace returns the namespace of the flag, or else that of the context.
func (a access) selectedNamespace() (string, error) {
	if a.flags.Context.Namespace != "" {
		return a.flags.Context.Namespace, nil
	}
	namespace, _, err := a.Namespace()
	if clientcmd.IsEmptyConfig(err) {
		return metav1.NamespaceDefault, nil // some commands need no cluster
	}
	if err != nil {
		return "", fmt.Errorf("read the kubeconfig: %w", err)
	}
	return namespace, nil
}

// cluster holds the clients of one API server. The objects that its Get and List return
// have no managedFields, which nobody wants to read.
type cluster struct {
	client.Client
	config *rest.Config
	// namespace is that of the flag, or else that of the context.
	namespace string
	kinds     *discovery.DiscoveryClient
	dynamic   dynamic.Interface
	apply     *apply.Client
	mapper    meta.RESTMapper // knows short names
	notes     []string        // what was not permitted, and without which a command went on
}

// connect returns the clients of the selected API server. Its warnings are written
// to warnings. wrap, if not nil, wraps the transport.
func (a access) connect(warnings io.Writer, wrap func(http.RoundTripper) http.RoundTripper) (*cluster, error) {
	config, err := a.ClientConfig.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("no cluster is configured; name a kubeconfig file with --kubeconfig or the variable KUBECONFIG")
	}
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	config.QPS = -1 // the API server's priority and fairness limits requests
	config.WarningHandler = rest.NewWarningWriter(warnings, rest.WarningWriterOptions{Deduplicate: true})
	if wrap != nil {
		config.Wrap(wrap)
	}
	scheme := runtime.NewScheme()
	err = errors.Join(v0.AddToScheme(scheme), corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme), authorizationv1.AddToScheme(scheme))
	if err != nil {
		return nil, fmt.Errorf("register kinds: %w", err)
	}
	c := &cluster{config: config}
	if c.namespace, err = a.selectedNamespace(); err != nil {
		return nil, err
	}
	if c.kinds, err = discovery.NewDiscoveryClientForConfig(config); err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	cached := memory.NewMemCacheClient(c.kinds)
	c.mapper = restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil)
	var errs [3]error // all for the same reasons
	c.dynamic, errs[0] = dynamic.NewForConfig(config)
	c.apply, errs[1] = apply.NewClient(config, nil)
	c.Client, errs[2] = client.New(config, client.Options{Scheme: scheme, Mapper: c.mapper})
	if err := cmp.Or(errs[0], errs[1], errs[2]); err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	return c, nil
}

func (c *cluster) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	err := c.Client.Get(ctx, key, object, options...)
	object.SetManagedFields(nil)
	return err
}

func (c *cluster) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := c.Client.List(ctx, list, options...); err != nil {
		return err
	}
	return meta.EachListItem(list, func(item runtime.Object) error {
		item.(client.Object).SetManagedFields(nil)
		return nil
	})
}

// configuration reads a Configuration.
func (c *cluster) configuration(ctx context.Context, namespace, name string) (*v0.Configuration, error) {
	var configuration v0.Configuration
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &configuration)
	if client.IgnoreNotFound(err) == nil && err != nil {
		return nil, fmt.Errorf("no Configuration %q in %s", name, where(namespace))
	}
	if err != nil {
		return nil, fmt.Errorf("read Configuration %s: %w", name, err)
	}
	return &configuration, nil
}

// instancesOf lists a Configuration's Instances that are not being deleted, sorted
// by name.
func (c *cluster) instancesOf(ctx context.Context, namespace, configuration string) ([]v0.Instance, error) {
	var list v0.InstanceList
	if err := c.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list Instances: %w", err)
	}
	return slices.DeleteFunc(list.Items, func(i v0.Instance) bool {
		return i.Spec.ConfigurationName != configuration || i.DeletionTimestamp != nil
	}), nil // the API server sorts by name
}

func where(namespace string) string {
	if namespace == "" {
		return "any namespace"
	}
	return fmt.Sprintf("namespace %q", namespace)
}

// decode converts an unstructured object to its type.
func decode[T any](object map[string]any) (*T, error) {
	var value T
	data, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(data, &value)
	}
	return &value, err
}

// completion completes the names of objects of a kind of Akri.
func (a access) completion(list client.ObjectList) cobra.CompletionFunc {
	const timeout = 3 * time.Second // the shell is blocked meanwhile
	return func(command *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		c, err := a.connect(io.Discard, nil)
		if err != nil || c.List(ctx, list, client.InNamespace(c.namespace)) != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []cobra.Completion
		_ = meta.EachListItem(list, func(item runtime.Object) error {
			names = append(names, item.(client.Object).GetName())
			return nil
		})
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// allowAll returns a policy that allows all kinds of a Configuration. It is for
// objects that exist already; the controller's own policy does not matter for them.
func allowAll(configuration *v0.Configuration) confine.Policy {
	policy := confine.Policy{ClusterScoped: true, OtherNamespaces: true}
	for _, list := range [][]v0.BrokerResource{configuration.Spec.InstanceBrokerResources, configuration.Spec.ConfigurationBrokerResources} {
		for _, template := range list {
			kind := (&unstructured.Unstructured{Object: template.Object}).GroupVersionKind()
			policy.Kinds = append(policy.Kinds, kind.GroupKind())
		}
	}
	return policy
}
