package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/cmd/kubectl-akri/facts"
	"akri.sh/akri/controller/apply"
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

// cluster holds the clients of one API server.
type cluster struct {
	client.Client
	config *rest.Config
	// namespace is that of the flag, or else that of the context.
	namespace string
	kinds     *discovery.DiscoveryClient
	dynamic   dynamic.Interface
	apply     *apply.Client
	mapper    meta.RESTMapper // knows short names
	facts     facts.Reader
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
	c.facts = facts.Reader{API: c.Client, Mapper: c.mapper}
	return c, nil
}

// printNotes prints what a command could not read, and what else it has to say.
func printNotes(streams cli.Streams, notes []string) {
	for _, note := range notes {
		fmt.Fprintf(streams.Err, "note: %s\n", note)
	}
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
