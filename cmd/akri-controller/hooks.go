package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
)

// The arguments that select the commands are the names of the events at which Helm runs
// them.
const (
	preDeleteName   = "pre-delete"
	preRollbackName = "pre-rollback"
)

const preDeleteUsage = `Usage: akri-controller pre-delete [flags]

Deletes the Configurations of a release of the chart, as a hook of "helm uninstall", and
waits until they and their Instances are gone. Helm would delete them after the controller,
without which nobody deletes their objects in other namespaces and removes their
finalizers. Configurations that Helm would not delete are left alone.

It finds the API server through --kubeconfig, the variable KUBECONFIG, the
ServiceAccount of its Pod, or ~/.kube/config, in this order.

Flags:
%s`

const preRollbackUsage = `Usage: akri-controller pre-rollback [flags]

Fails if Configurations of a release of the chart exist, as a hook of "helm rollback" to
a revision that does not contain the Configurations in its values: Helm would delete them.

It finds the API server through --kubeconfig, the variable KUBECONFIG, the
ServiceAccount of its Pod, or ~/.kube/config, in this order.

Flags:
%s`

// helmRelease is a release of the chart with the Configurations in its values.
type helmRelease struct {
	name           string
	namespace      string
	configurations []string
	timeout        time.Duration
	out            io.Writer

	api  client.Client
	keys []client.ObjectKey
}

func (r *helmRelease) register(set *pflag.FlagSet) {
	set.StringVar(&r.name, "release", "akri", "`name` of the release")
	set.StringVar(&r.namespace, "namespace", "akri-system", "`namespace` of the release")
	set.StringSliceVar(&r.configurations, "configurations", nil, "Configurations in the release's values, as `NAMESPACE/NAME`s")
	set.DurationVar(&r.timeout, "timeout", 2*time.Minute, "`duration` after which the command fails")
}

// connect connects to the API server.
func (r *helmRelease) connect(api *rest.Config) error {
	var err error
	if r.keys, err = parseKeys(r.configurations); err != nil {
		return err
	}
	if r.api, err = newClient(api); err != nil {
		return err
	}
	if r.out == nil {
		r.out = os.Stdout
	}
	return nil
}

// parseKeys parses the value of the flag --configurations.
func parseKeys(names []string) ([]client.ObjectKey, error) {
	var keys []client.ObjectKey
	for _, text := range names {
		namespace, name, ok := strings.Cut(text, "/")
		if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
			return nil, fmt.Errorf("configurations: %q is no name of a Configuration: use NAMESPACE/NAME", text)
		}
		keys = append(keys, client.ObjectKey{Namespace: namespace, Name: name})
	}
	return keys, nil
}

// deletes reports whether Helm deletes a Configuration with the release: by Helm's labels
// and annotations it belongs to the release, and it need not be kept.
func (r *helmRelease) deletes(configuration *v0.Configuration) bool {
	annotations := configuration.Annotations
	return configuration.Labels["app.kubernetes.io/managed-by"] == "Helm" &&
		annotations["meta.helm.sh/release-name"] == r.name &&
		annotations["meta.helm.sh/release-namespace"] == r.namespace &&
		annotations["helm.sh/resource-policy"] != "keep"
}

// read reads a Configuration. It returns nil if there is none.
func (r *helmRelease) read(ctx context.Context, key client.ObjectKey) (*v0.Configuration, error) {
	configuration := &v0.Configuration{}
	err := r.api.Get(ctx, key, configuration)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the Configuration %s: %w", key, err)
	}
	return configuration, nil
}

// preRollbackCommand refuses a rollback that would delete Configurations.
type preRollbackCommand struct{ helmRelease }

// serve fails if Configurations would be deleted.
func (c *preRollbackCommand) serve(ctx context.Context, api *rest.Config) error {
	if err := c.connect(api); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var lost []string
	err := eventually(ctx, func(ctx context.Context) error {
		lost = nil
		for _, key := range c.keys {
			configuration, err := c.read(ctx, key)
			if err != nil {
				return err
			}
			if configuration != nil && configuration.DeletionTimestamp.IsZero() && c.deletes(configuration) {
				lost = append(lost, key.String())
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(lost) > 0 {
		return errors.New(c.refusal(lost))
	}
	fmt.Fprintln(c.out, "No Configuration would be deleted.")
	return nil
}

// refusal says why the release is not rolled back, and what to do.
func (c *preRollbackCommand) refusal(lost []string) string {
	return fmt.Sprintf(`refused to roll back: this would delete the Configurations %s, with their devices and brokers: they are in
the values of the revision to which you want to return, but not in its objects, because "helm install" leaves them
out until the webhook runs. Return to a revision after the one more step that "helm install" printed, which also ends
this refused rollback:

  helm rollback %s REVISION --namespace %s

To return to the first revision and keep these Configurations, repeat your command with --no-hooks: this refused
rollback is now the current revision, which does not have them, so Helm does not delete them. Then repeat the one more
step. To lose them, delete them with kubectl before.`, strings.Join(lost, ", "), c.name, c.namespace)
}

// preDeleteCommand deletes the release's Configurations while Akri runs.
type preDeleteCommand struct{ helmRelease }

// serve deletes the Configurations and waits until nothing of them is left.
func (c *preDeleteCommand) serve(ctx context.Context, api *rest.Config) error {
	if err := c.connect(api); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var left []string
	err := eventually(ctx, func(ctx context.Context) error {
		now, err := c.delete(ctx)
		if err != nil {
			return err
		}
		if left = now; len(left) > 0 {
			return errors.New(c.incomplete(left))
		}
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(c.out, "The Configurations of the release and their Instances are gone.")
	return nil
}

// delete deletes the Configurations that are not being deleted yet. It returns what is
// left of them and of their Instances.
func (c *preDeleteCommand) delete(ctx context.Context) ([]string, error) {
	var left []string
	deleted := map[string]sets.Set[string]{} // by namespace
	for _, key := range c.keys {
		configuration, err := c.read(ctx, key)
		if err != nil {
			return nil, err
		}
		if configuration != nil && !c.deletes(configuration) {
			continue
		}
		if deleted[key.Namespace] == nil {
			deleted[key.Namespace] = sets.New[string]()
		}
		deleted[key.Namespace].Insert(key.Name)
		if configuration == nil {
			continue
		}
		left = append(left, describe("Configuration", configuration))
		if configuration.DeletionTimestamp.IsZero() {
			// Never one that was created in the meantime, which may be another's.
			this := client.Preconditions{UID: &configuration.UID}
			if err := client.IgnoreNotFound(c.api.Delete(ctx, configuration, this)); err != nil {
				return nil, fmt.Errorf("delete the Configuration %s: %w", key, err)
			}
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(deleted)) {
		err := eachInstance(ctx, c.api, namespace, func(instance *v0.Instance) {
			if deleted[namespace].Has(instance.Spec.ConfigurationName) {
				left = append(left, describe("Instance", instance))
			}
		})
		if err != nil && !meta.IsNoMatchError(err) {
			return nil, err
		}
	}
	return left, nil
}

// eachInstance calls a function with each Instance of a namespace. It reads a few at a time:
// users may give the metadata of each a megabyte.
func eachInstance(ctx context.Context, api client.Reader, namespace string, use func(*v0.Instance)) error {
	const pageSize = 10
	for next := ""; ; {
		instances := &v0.InstanceList{}
		if err := api.List(ctx, instances, client.InNamespace(namespace), client.Limit(pageSize), client.Continue(next)); err != nil {
			return fmt.Errorf("list the Instances in %s: %w", namespace, err)
		}
		for i := range instances.Items {
			use(&instances.Items[i])
		}
		if next = instances.Continue; next == "" {
			return nil
		}
	}
}

// describe returns an object's kind and name, and its finalizers, which keep it.
func describe(kind string, object client.Object) string {
	text := kind + " " + client.ObjectKeyFromObject(object).String()
	if finalizers := object.GetFinalizers(); len(finalizers) > 0 {
		text += " (finalizers: " + strings.Join(finalizers, ", ") + ")"
	}
	return text
}

// incomplete says what is left, why, and what to do.
func (c *preDeleteCommand) incomplete(left []string) string {
	const most = 10
	names := strings.Join(left[:min(len(left), most)], ", ")
	if len(left) > most {
		names += fmt.Sprintf(" and %d more", len(left)-most)
	}
	return fmt.Sprintf(`refused to uninstall: these are still there after %s: %s: only a controller that runs
removes the finalizer %s, after it has deleted their objects in other namespaces. See

  kubectl --namespace %s get pods
  kubectl --namespace %s logs deployment/akri-controller

and repeat "helm uninstall". To uninstall nevertheless, add --no-hooks, and remove yourself what is left then.`,
		c.timeout, names, v0.FinalizerCleanup, c.namespace, c.namespace)
}
