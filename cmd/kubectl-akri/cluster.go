package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/spf13/cobra"
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
	"akri.sh/akri/cmd/kubectl-akri/offline"
	"akri.sh/akri/controller/confine"
)

// access is the flags that say which cluster and which namespace.
type access struct {
	kubeconfig    string
	context       string
	namespace     string
	allNamespaces bool
}

func (a *access) addFlags(command *cobra.Command) {
	command.Flags().StringVar(&a.kubeconfig, "kubeconfig", "", "kubeconfig `file` (default: KUBECONFIG, else ~/.kube/config)")
	command.Flags().StringVar(&a.context, "context", "", "`name` of the context in it")
	command.Flags().StringVarP(&a.namespace, "namespace", "n", "", "`namespace` to look into (default: the context's)")
	command.SetFlagErrorFunc(offline.Misused)
	args := command.Args
	command.Args = func(command *cobra.Command, given []string) error {
		if err := args(command, given); err != nil {
			return offline.Misused(command, err)
		}
		return nil
	}
}

func (a *access) loader() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = a.kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: a.context})
}

// home is the namespace to look into; empty for all.
func (a *access) home() (string, error) {
	if a.allNamespaces {
		return "", nil
	}
	if a.namespace != "" {
		return a.namespace, nil
	}
	namespace, _, err := a.loader().Namespace()
	if clientcmd.IsEmptyConfig(err) {
		return metav1.NamespaceDefault, nil // some questions need no cluster
	}
	if err != nil {
		return "", fmt.Errorf("read the kubeconfig: %w", err)
	}
	return namespace, nil
}

// cluster is the way to an API server.
type cluster struct {
	client.Client
	dynamic dynamic.Interface
	mapper  meta.RESTMapper // knows short names
}

// connect finds the API server, whose warnings go to warnings. wrap, if not nil,
// is put around each request.
func (a *access) connect(warnings io.Writer, wrap func(http.RoundTripper) http.RoundTripper) (*cluster, error) {
	config, err := a.loader().ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	config.QPS = -1 // the API server's own fairness governs
	config.WarningHandler = rest.NewWarningWriter(warnings, rest.WarningWriterOptions{Deduplicate: true})
	if wrap != nil {
		config.Wrap(wrap)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(v0.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("register kinds: %w", err)
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	cached := memory.NewMemCacheClient(kinds)
	c := &cluster{mapper: restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil)}
	if c.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	if c.Client, err = client.New(config, client.Options{Scheme: scheme, Mapper: c.mapper}); err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	return c, nil
}

// configuration is a Configuration of the cluster.
func (c *cluster) configuration(ctx context.Context, namespace, name string) (*v0.Configuration, error) {
	var configuration v0.Configuration
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &configuration)
	if client.IgnoreNotFound(err) == nil && err != nil {
		return nil, fmt.Errorf("there is no Configuration %q in %s", name, where(namespace))
	}
	if err != nil {
		return nil, fmt.Errorf("read Configuration %s: %w", name, err)
	}
	return &configuration, nil
}

// instancesOf are the Configuration's Instances that the controller makes objects
// for, sorted by name.
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

// decoded reads an object that was read as a map.
func decoded[T any](object map[string]any) (*T, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var value T
	if err := json.Unmarshal(data, &value); err != nil {
		return nil, err
	}
	return &value, nil
}

// completion proposes the names of a kind of ours to a shell.
func (a *access) completion(list client.ObjectList) cobra.CompletionFunc {
	const patience = 3 * time.Second // a shell waits for us
	return func(command *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		namespace, err := a.home()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		c, err := a.connect(io.Discard, nil)
		if err != nil || c.List(ctx, list, client.InNamespace(namespace)) != nil {
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

// allowAll is for questions about what was made already: whatever the operator of
// the controller allows, it is not asked here.
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
