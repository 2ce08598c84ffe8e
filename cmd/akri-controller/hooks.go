package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
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
	postInstallName = "post-install"
)

const preDeleteUsage = `Usage: akri-controller pre-delete [flags]

Deletes the Configurations of a release of the chart, as a hook of "helm uninstall", and
waits until they and their Instances are gone. Helm would delete them after the controller,
without which nobody deletes their objects in other namespaces and removes their
finalizers. Configurations that Helm would not delete are left alone.
`

const preRollbackUsage = `Usage: akri-controller pre-rollback [flags]

A hook of "helm rollback" to the first revision of a release of the chart, whose objects do
not include the Configurations in its values: Helm would delete them. This keeps them, and
the hook post-install then makes them what the values of that revision say.
`

const postInstallUsage = `Usage: akri-controller post-install [flags]

Applies the Configurations in the values of a release of the chart, as a hook of "helm
install": Helm cannot create them together with their kind, and before the webhook reviews
them. It tries until the webhook answers. From the next revision on, Helm does it.
`

// helmRelease is a release of the chart with the Configurations in its values.
type helmRelease struct {
	name           string
	namespace      string
	configurations []string
	timeout        time.Duration

	api  client.Client
	keys []client.ObjectKey
}

func (r *helmRelease) register(set *pflag.FlagSet) {
	set.StringVar(&r.name, "release", "akri", "`name` of the release")
	set.StringVar(&r.namespace, "namespace", "akri-system", "`namespace` of the release")
	set.StringSliceVar(&r.configurations, "configurations", nil, "Configurations in the release's values, as `NAMESPACE/NAME`s")
	set.DurationVar(&r.timeout, "timeout", 2*time.Minute, "`duration` after which the command fails")
}

// run connects to the API server, and repeats a step until it succeeds or the time is up.
func (r *helmRelease) run(ctx context.Context, api *rest.Config, step func(context.Context) error) error {
	var err error
	if r.keys, err = parseKeys(r.configurations); err != nil {
		return err
	}
	if r.api, err = newClient(api); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	return eventually(ctx, step)
}

// parseKeys parses the value of the flag --configurations.
func parseKeys(names []string) ([]client.ObjectKey, error) {
	var keys []client.ObjectKey
	for _, text := range names {
		namespace, name, ok := strings.Cut(text, "/")
		if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
			return nil, fmt.Errorf("configurations: %q is not the name of a Configuration: use NAMESPACE/NAME", text)
		}
		keys = append(keys, client.ObjectKey{Namespace: namespace, Name: name})
	}
	return keys, nil
}

// errOfAnother means that somebody else has a Configuration with the name of one in the values.
var errOfAnother = errors.New("it exists, and does not belong to the")

// resourcePolicy is the annotation of objects that Helm keeps.
const resourcePolicy = "helm.sh/resource-policy"

// owns reports whether a Configuration belongs to the release, by Helm's labels and annotations.
func (r *helmRelease) owns(configuration *v0.Configuration) bool {
	annotations := configuration.Annotations
	return configuration.Labels["app.kubernetes.io/managed-by"] == "Helm" &&
		annotations["meta.helm.sh/release-name"] == r.name &&
		annotations["meta.helm.sh/release-namespace"] == r.namespace
}

// deletes reports whether Helm deletes a Configuration with the release.
func (r *helmRelease) deletes(configuration *v0.Configuration) bool {
	return r.owns(configuration) && configuration.Annotations[resourcePolicy] != "keep"
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

// preRollbackCommand keeps Configurations that a rollback would delete.
type preRollbackCommand struct{ helmRelease }

// serve annotates the Configurations, so that Helm keeps them.
func (c *preRollbackCommand) serve(ctx context.Context, api *rest.Config) error {
	keep := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+resourcePolicy+`":"keep"}}}`))
	return c.run(ctx, api, func(ctx context.Context) error {
		for _, key := range c.keys {
			configuration, err := c.read(ctx, key)
			if err != nil {
				return err
			}
			if configuration == nil || !c.deletes(configuration) {
				continue
			}
			if err := client.IgnoreNotFound(c.api.Patch(ctx, configuration, keep)); err != nil {
				return fmt.Errorf("keep the Configuration %s: %w", key, err)
			}
		}
		return nil
	})
}

// postInstallCommand applies the release's Configurations in place of Helm.
type postInstallCommand struct {
	helmRelease
	file string
}

func (c *postInstallCommand) register(set *pflag.FlagSet) {
	c.helmRelease.register(set)
	set.StringVar(&c.file, "file", "", "`file` with the Configurations, as a list in JSON")
}

// serve applies each Configuration.
func (c *postInstallCommand) serve(ctx context.Context, api *rest.Config) error {
	data, err := os.ReadFile(c.file)
	if err != nil {
		return fmt.Errorf("read the Configurations: %w", err)
	}
	var wanted []unstructured.Unstructured
	if err = json.Unmarshal(data, &wanted); err != nil {
		return fmt.Errorf("read the Configurations in %s: %w", c.file, err)
	}
	return c.run(ctx, api, func(ctx context.Context) error {
		for i := range wanted {
			if err := c.apply(ctx, &wanted[i]); err != nil {
				return fmt.Errorf("apply the Configuration %s: %w", client.ObjectKeyFromObject(&wanted[i]), err)
			}
		}
		return nil
	})
}

// apply makes a Configuration what the values say, as Helm does: with its field manager, and not
// if it is another's.
func (c *postInstallCommand) apply(ctx context.Context, wanted *unstructured.Unstructured) error {
	existing, err := c.read(ctx, client.ObjectKeyFromObject(wanted))
	if err != nil {
		return err
	}
	if existing != nil && !c.owns(existing) {
		return fmt.Errorf("%w release %s: delete it, or have Helm take it over: "+
			"helm upgrade %s CHART --namespace %s --reset-then-reuse-values --take-ownership", errOfAnother, c.name, c.name, c.namespace)
	}
	const manager = client.FieldOwner("helm")
	live := wanted.DeepCopy()
	if err := c.api.Apply(ctx, client.ApplyConfigurationFromUnstructured(live), manager, client.ForceOwnership); err != nil {
		return err
	}
	// What remains of later revisions: fields that Helm 3 added, and that a rollback keeps it.
	live.Object["spec"] = wanted.Object["spec"]
	if wanted.GetAnnotations()[resourcePolicy] == "" {
		unstructured.RemoveNestedField(live.Object, "metadata", "annotations", resourcePolicy)
	}
	return c.api.Update(ctx, live, manager)
}

// preDeleteCommand deletes the release's Configurations while Akri runs.
type preDeleteCommand struct{ helmRelease }

// serve deletes the Configurations and waits until nothing of them is left.
func (c *preDeleteCommand) serve(ctx context.Context, api *rest.Config) error {
	return c.run(ctx, api, func(ctx context.Context) error {
		left, err := c.delete(ctx)
		if err == nil && len(left) > 0 {
			err = errors.New(c.incomplete(left))
		}
		return err
	})
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
	return fmt.Sprintf(`refused to uninstall: %d objects are still there after %s, such as %s: only a controller that runs
removes the finalizer %s, after it has deleted their objects in other namespaces. See

  kubectl --namespace %s get pods
  kubectl --namespace %s logs deployment/akri-controller

and repeat "helm uninstall". To uninstall nevertheless, add --no-hooks, and remove yourself what is left then.`,
		len(left), c.timeout, strings.Join(left[:min(len(left), 10)], ", "), v0.FinalizerCleanup, c.namespace, c.namespace)
}
