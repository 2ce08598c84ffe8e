package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/cmd/kubectl-akri/bundle"
	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/cmd/kubectl-akri/view"
	"akri.sh/akri/internal/version"
)

// requestTimeout bounds a single request of a report, so that one node that does not
// answer does not use up the time.
const requestTimeout = 15 * time.Second

// collector collects a report. What it cannot read is recorded in the bundle.
type collector struct {
	*cluster
	config    *rest.Config
	namespace string // of the installation
	fallback  string // namespace of Configurations, if not all may be read
	port      int
	bundle    *bundle.Bundle

	pods           []corev1.Pod // of the installation
	configurations []v0.Configuration
	instances      []v0.Instance
}

// collect reads everything, the most useful first.
func (c *collector) collect(ctx context.Context) {
	for _, step := range []struct {
		what string
		read func(context.Context) error
	}{
		{"versions", c.versions},
		{"Configurations and Instances", c.akriObjects},
		{"Events", c.events},
		{"Pods of Akri", c.systemPodsAndWorkloads},
		{"cluster-scoped objects", c.clusterScoped},
		{"nodes", c.nodes},
		{"agents", c.agentStates},
		{"logs", c.logs},
		{"objects made for devices", c.rendered},
	} {
		err := step.read(ctx)
		if ctx.Err() != nil {
			err = fmt.Errorf("incomplete: %w", context.Cause(ctx))
		}
		if err != nil {
			c.bundle.Fail(step.what, err)
		}
	}
}

func (c *collector) versions(ctx context.Context) error {
	options := versionOptions{timeout: requestTimeout}
	versions := &view.Versions{Client: version.Get(), Namespace: c.namespace}
	err := options.readWith(ctx, c.cluster, c.config, versions)
	versions.Judge()
	var text bytes.Buffer
	err = errors.Join(err, view.PrintVersions(&text, versions))
	c.bundle.AddText(text.Bytes(), "versions.txt")
	return errors.Join(err, c.addAs(versions, "versions"))
}

// addAs adds a value as YAML.
func (c *collector) addAs(value any, elements ...string) error {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(value)
	if err != nil {
		return err
	}
	c.bundle.AddObject(object, elements...)
	return nil
}

// akriObjects adds Configurations and Instances. Without the right to list them in all
// namespaces, it reads those of the installation's namespace and of the kubeconfig's.
func (c *collector) akriObjects(ctx context.Context) error {
	namespaces := []string{""}
	var all v0.ConfigurationList
	err := c.List(ctx, &all)
	if err != nil {
		c.bundle.Fail("Configurations of all namespaces", err)
		namespaces = slices.Compact([]string{c.fallback, c.namespace})
	}
	var failures []error
	for _, namespace := range namespaces {
		var configurations v0.ConfigurationList
		var instances v0.InstanceList
		failures = append(failures, c.List(ctx, &configurations, client.InNamespace(namespace)),
			c.List(ctx, &instances, client.InNamespace(namespace)))
		c.configurations = append(c.configurations, configurations.Items...)
		c.instances = append(c.instances, instances.Items...)
	}
	for i := range c.configurations {
		o := &c.configurations[i]
		failures = append(failures, c.addAs(o, "akri", o.Namespace, "configurations", o.Name))
	}
	for i := range c.instances {
		o := &c.instances[i]
		failures = append(failures, c.addAs(o, "akri", o.Namespace, "instances", o.Name))
	}
	var text bytes.Buffer
	failures = append(failures, view.Tree(cli.Printable(&text), c.configurations, c.instances))
	c.bundle.AddText(text.Bytes(), "tree.txt")
	return errors.Join(failures...)
}

// objectsOf lists the objects of a resource.
func (c *collector) objectsOf(ctx context.Context, resource schema.GroupVersionResource, namespace string) []unstructured.Unstructured {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list, err := c.dynamic.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		c.bundle.Fail(resource.GroupResource().String(), err)
		return nil
	}
	return list.Items
}

// isOurs reports whether an object belongs to the installation.
func isOurs(object client.Object) bool {
	labels := object.GetLabels()
	return componentOf(labels) != "" || labels["app.kubernetes.io/part-of"] == "akri" ||
		strings.HasPrefix(object.GetName(), "akri-") || strings.HasSuffix(object.GetName(), "."+v0.Domain)
}

// systemResources are those that the installation has in its namespace. Secrets and
// ConfigMaps are not among them.
var systemResources = []schema.GroupVersionResource{
	{Group: "apps", Version: "v1", Resource: "deployments"}, {Group: "apps", Version: "v1", Resource: "daemonsets"},
	{Version: "v1", Resource: "pods"}, {Version: "v1", Resource: "services"}, {Version: "v1", Resource: "serviceaccounts"},
	{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
	{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"},
	{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
}

func (c *collector) systemPodsAndWorkloads(ctx context.Context) error {
	for _, resource := range systemResources {
		for _, object := range c.objectsOf(ctx, resource, c.namespace) {
			if isOurs(&object) {
				c.bundle.AddObject(object.Object, "system", resource.Resource, object.GetName())
			}
		}
	}
	var err error
	c.pods, err = c.systemPods(ctx, c.namespace)
	return err
}

var clusterResources = []schema.GroupVersionResource{
	{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
}

func (c *collector) clusterScoped(ctx context.Context) error {
	for _, resource := range clusterResources {
		for _, object := range c.objectsOf(ctx, resource, "") {
			if !isOurs(&object) {
				continue
			}
			versions, _, _ := unstructured.NestedSlice(object.Object, "spec", "versions") // of a CRD
			for _, served := range versions {
				if fields, ok := served.(map[string]any); ok {
					delete(fields, "schema")
				}
			}
			if versions != nil {
				_ = unstructured.SetNestedSlice(object.Object, versions, "spec", "versions")
			}
			c.bundle.AddObject(object.Object, "cluster", resource.Resource, object.GetName())
		}
	}
	return nil
}

// nodeReport is what is reported about a node.
type nodeReport struct {
	Name        string                 `json:"name"`
	Info        corev1.NodeSystemInfo  `json:"info"`
	Taints      []corev1.Taint         `json:"taints,omitempty"`
	Conditions  []corev1.NodeCondition `json:"conditions,omitempty"`
	Allocatable map[string]string      `json:"allocatable,omitempty"` // devices of Akri
}

func (c *collector) nodes(ctx context.Context) error {
	var list corev1.NodeList
	if err := c.List(ctx, &list); err != nil {
		return err
	}
	var reports struct {
		Nodes []nodeReport `json:"nodes"`
	}
	for i := range list.Items {
		node := &list.Items[i]
		report := nodeReport{
			Name: node.Name, Info: node.Status.NodeInfo, Taints: node.Spec.Taints, Conditions: node.Status.Conditions,
			Allocatable: map[string]string{},
		}
		for name, amount := range node.Status.Allocatable {
			if strings.HasPrefix(string(name), v0.Domain+"/") {
				report.Allocatable[string(name)] = amount.String()
			}
		}
		reports.Nodes = append(reports.Nodes, report)
	}
	return c.addAs(&reports, "nodes")
}

// agentStates adds the state of each agent, as kubectl akri nodes -o yaml shows it.
func (c *collector) agentStates(ctx context.Context) error {
	reports, err := c.agents(ctx, c.namespace, nil)
	if err != nil {
		return err
	}
	options := nodesOptions{port: c.port, timeout: requestTimeout}
	return eachOf(reports, func(report *view.NodeReport) error {
		if report.Problem == "" {
			options.read(ctx, c.config, report)
		}
		if report.Problem != "" {
			c.bundle.Fail("agent of "+report.Node, errors.New(report.Problem))
			return nil
		}
		return c.addAs(report, "agents", cmp.Or(report.Node, report.Pod))
	})
}

// eachOf calls a function for all items, some at the same time.
func eachOf[T any](items []T, do func(*T) error) error {
	var group errgroup.Group
	group.SetLimit(maxForwards)
	for i := range items {
		group.Go(func() error { return do(&items[i]) })
	}
	return group.Wait()
}

func (c *collector) logs(ctx context.Context) error {
	logs, err := newLogs(c.config)
	if err != nil {
		return err
	}
	return eachOf(c.pods, func(pod *corev1.Pod) error {
		statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
		for _, status := range statuses {
			c.log(ctx, logs, pod, status.Name, false)
			if status.RestartCount > 0 {
				c.log(ctx, logs, pod, status.Name, true)
			}
		}
		return nil
	})
}

func (c *collector) log(ctx context.Context, logs rest.Interface, pod *corev1.Pod, container string, previous bool) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	name := container + ".log"
	if previous {
		name = container + ".previous.log"
	}
	text, err := readLog(ctx, logs, client.ObjectKeyFromObject(pod), container, previous)
	if err != nil {
		c.bundle.Fail("logs/"+pod.Name+"/"+name, err)
		return
	}
	c.bundle.AddText(text, "logs", pod.Name, name)
}

// maxRendered bounds the objects made for devices that are read.
const maxRendered = 2000

// rendered adds the metadata and the status of the objects made for devices. Secrets
// are not read.
func (c *collector) rendered(ctx context.Context) error {
	var all []v0.ResourceStatus
	for i := range c.configurations {
		all = append(all, c.configurations[i].Status.Resources...)
	}
	for i := range c.instances {
		all = append(all, c.instances[i].Status.Resources...)
	}
	all = slices.DeleteFunc(all, func(resource v0.ResourceStatus) bool { return resource.Group == "" && resource.Kind == "Secret" })
	if len(all) > maxRendered {
		c.bundle.Fail("objects made for devices", fmt.Errorf("only the first %d of %d are read", maxRendered, len(all)))
		all = all[:maxRendered]
	}
	return eachOf(all, func(resource *v0.ResourceStatus) error {
		kind := schema.GroupVersionKind{Group: resource.Group, Version: resource.Version, Kind: resource.Kind}
		var object unstructured.Unstructured
		object.SetGroupVersionKind(kind)
		key := client.ObjectKey{Namespace: resource.Namespace, Name: resource.Name}
		if err := c.Get(ctx, key, &object); err != nil {
			c.bundle.Fail(fmt.Sprintf("%s %s", kind.GroupKind(), key), err)
			return nil
		}
		c.bundle.AddObject(metadataAndStatus(object.Object), "akri", cmp.Or(resource.Namespace, "cluster"), "objects",
			strings.ToLower(kind.GroupKind().String()), resource.Name)
		return nil
	})
}

// metadataAndStatus returns an object without what its template rendered. Termination
// messages of Pods are dropped, because they can be the end of a broker's log.
func metadataAndStatus(object map[string]any) map[string]any {
	kept := map[string]any{}
	for _, field := range []string{"apiVersion", "kind", "metadata", "status"} {
		if object[field] != nil {
			kept[field] = object[field]
		}
	}
	status, _ := kept["status"].(map[string]any)
	for _, list := range []string{"containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"} {
		containers, _ := status[list].([]any)
		for _, container := range containers {
			for _, state := range []string{"state", "lastState"} {
				if fields, ok := container.(map[string]any); ok {
					unstructured.RemoveNestedField(fields, state, "terminated", "message")
				}
			}
		}
	}
	return kept
}

// maxEvents bounds the Events that are read of a namespace.
const maxEvents = 5000

// events adds Events about Configurations, Instances and the Pods of the installation,
// and of the objects made for devices, oldest first.
func (c *collector) events(ctx context.Context) error {
	namespaces := map[string]bool{c.namespace: true}
	for i := range c.configurations {
		namespaces[c.configurations[i].Namespace] = true
	}
	ours := map[string]bool{}
	for i := range c.configurations {
		for _, resource := range c.configurations[i].Status.Resources {
			ours[resource.UID] = true
		}
	}
	for i := range c.instances {
		for _, resource := range c.instances[i].Status.Resources {
			ours[resource.UID] = true
		}
	}
	var found []corev1.Event
	var failures []error
	for namespace := range namespaces {
		var list corev1.EventList
		if err := c.List(ctx, &list, client.InNamespace(namespace), client.Limit(maxEvents)); err != nil {
			failures = append(failures, fmt.Errorf("namespace %s: %w", namespace, err))
		}
		for _, event := range list.Items {
			about := event.InvolvedObject
			if namespace == c.namespace || strings.HasPrefix(about.APIVersion, v0.Domain+"/") || ours[string(about.UID)] {
				found = append(found, event)
			}
		}
	}
	slices.SortFunc(found, func(a, b corev1.Event) int {
		return cmp.Or(lastOf(&a).Compare(lastOf(&b)), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	var text bytes.Buffer
	for i := range found {
		printEvent(&text, &found[i])
	}
	c.bundle.AddText(text.Bytes(), "events.txt")
	return errors.Join(failures...)
}

// lastOf returns when an Event was last seen.
func lastOf(event *corev1.Event) time.Time {
	if event.Series != nil {
		return event.Series.LastObservedTime.Time
	}
	return slices.MaxFunc([]time.Time{event.LastTimestamp.Time, event.EventTime.Time, event.CreationTimestamp.Time}, time.Time.Compare)
}

func printEvent(to io.Writer, event *corev1.Event) {
	count := event.Count
	if event.Series != nil {
		count = event.Series.Count
	}
	about := event.InvolvedObject
	message, _ := json.Marshal(event.Message) // on one line
	fmt.Fprintf(to, "%s %s %s %s %s/%s (%d times, %s): %s\n", lastOf(event).UTC().Format(time.RFC3339), event.Type, event.Reason,
		about.Kind, event.Namespace, about.Name, max(count, 1), cmp.Or(event.ReportingController, event.Source.Component), message)
}
