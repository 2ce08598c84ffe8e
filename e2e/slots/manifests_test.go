package slots

import (
	"fmt"
	"slices"
	"strings"
)

// configuration creates a Configuration whose devices have these descriptions, waits for
// the Instances on both nodes, and returns their names by description.
func (w *world) configuration(name string, capacity int, devices ...string) map[string]string {
	w.t.Helper()
	w.describeDevices(name, capacity, devices...)
	return w.awaitInstances(name, devices, node1, node2)
}

// describeDevices creates or updates a Configuration.
func (w *world) describeDevices(name string, capacity int, devices ...string) {
	w.t.Helper()
	w.apply(fmt.Sprintf(`
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: %s}
spec:
  discoveryHandler: {name: debugEcho, discoveryDetails: "descriptions: [%s]"}
  capacity: %d
`, name, strings.Join(devices, ", "), capacity))
}

// awaitInstances waits until exactly these devices of a Configuration are Instances on
// these nodes, and returns the names by description.
func (w *world) awaitInstances(configuration string, devices []string, nodes ...string) map[string]string {
	w.t.Helper()
	found := map[string]string{}
	w.eventually("Instances of "+configuration, func() string {
		clear(found)
		for _, instance := range w.list("Instance", "akri.sh/configuration="+configuration) {
			slices.Sort(instance.Spec.Nodes)
			if instance.Metadata.DeletionTimestamp != "" || !slices.Equal(instance.Spec.Nodes, nodes) {
				return fmt.Sprintf("%s is on %v", instance.Metadata.Name, instance.Spec.Nodes)
			}
			found[instance.Spec.BrokerProperties[property]] = instance.Metadata.Name
		}
		for _, device := range devices {
			if found[device] == "" {
				return fmt.Sprintf("%s is missing among %v", device, found)
			}
		}
		if len(found) != len(devices) {
			return fmt.Sprintf("%v, want %v", found, devices)
		}
		return ""
	})
	return found
}

// capacityOf waits until a node offers a number of devices of a resource.
func (w *world) allocatable(node, resource string, count int) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%d %s on %s", count, resource, node), func() string {
		status := w.get("Node", node).Status
		if have := status.Allocatable["akri.sh/"+resource]; have != fmt.Sprint(count) {
			return fmt.Sprintf("allocatable %q, capacity %q", have, status.Capacity["akri.sh/"+resource])
		}
		return ""
	})
}

// namespaceVariable sets the environment variable that identifies the processes of a test.
const namespaceVariable = "{name: NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}"

// container is a container in a manifest.
type container struct {
	name      string
	resources string // such as `akri.sh/echo-8120fe: "1"`; empty: none
	more      string // further fields, as a flow mapping's content
}

// manifest returns the container as YAML.
func (c container) manifest() string {
	more := ""
	if c.more != "" {
		more = ", " + c.more
	}
	return fmt.Sprintf("{name: %[1]s, image: \"akri.local/workload:1\", env: ["+namespaceVariable+", {name: CONTAINER, value: %[1]s}], "+
		"resources: {limits: {%[2]s}}%[3]s}", c.name, c.resources, more)
}

// one returns the limits of a container that uses some devices of a resource.
func limit(resource string, count int) string {
	return fmt.Sprintf("\"akri.sh/%s\": \"%d\"", resource, count)
}

// podSpec returns the spec of a Pod on a node, or on any node if it is empty.
func podSpec(node string, inits []container, containers ...container) string {
	selector := ""
	if node != "" {
		selector = "kubernetes.io/hostname: " + node
	}
	list := func(all []container) string {
		var texts []string
		for _, c := range all {
			texts = append(texts, c.manifest())
		}
		return strings.Join(texts, ", ")
	}
	return fmt.Sprintf("{terminationGracePeriodSeconds: 1, nodeSelector: {%s}, initContainers: [%s], containers: [%s]}",
		selector, list(inits), list(containers))
}

// Pod creates a Pod with one container, named "app", that uses one device of a resource.
func (w *world) pod(name, node, resource string) {
	w.t.Helper()
	w.podWith(name, podSpec(node, nil, container{name: "app", resources: limit(resource, 1)}))
}

// podWith creates a Pod.
func (w *world) podWith(name, spec string) {
	w.t.Helper()
	w.apply(fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: %s}", name, spec))
}

// started creates a Pod as Pod does, and waits until its container runs.
func (w *world) started(name, node, resource string) user {
	w.t.Helper()
	w.pod(name, node, resource)
	u := w.container(name, "app")
	if len(u.devices) == 0 {
		w.t.Errorf("%v has no device, although it requested %s", u, resource)
	}
	return u
}

// deployment creates a Deployment with Pods as podSpec describes them.
func (w *world) deployment(name string, replicas int, spec string) {
	w.t.Helper()
	w.apply(fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: %[3]s
`, name, replicas, spec))
}

// end deletes a Deployment, and waits until none of its Pods runs.
func (w *world) end(deployment, selector string) {
	w.t.Helper()
	w.patch("Deployment", deployment, "{spec: {replicas: 0}}") // the garbage collector may need half a minute
	w.eventually("the pods of "+deployment+" are gone", func() string {
		left := slices.DeleteFunc(w.list("Pod", selector), func(pod object) bool { return pod.Status.Phase == "Failed" })
		return namesOf(left)
	})
	w.delete("Deployment", deployment)
}

// pending waits until the scheduler has found no node for a Pod, because of the device.
func (w *world) pending(pod string) {
	w.t.Helper()
	w.eventually(pod+" is Pending", func() string {
		if o := w.get("Pod", pod); o.Status.Phase == "Pending" && o.Spec.NodeName == "" && len(o.Status.Conditions) > 0 &&
			!o.condition("PodScheduled") {
			return ""
		}
		return w.describe(pod)
	})
}

// gone waits until a Pod no longer exists.
func (w *world) gone(pod string) {
	w.t.Helper()
	w.eventually(pod+" is gone", func() string {
		if _, found := w.find("Pod", pod); found {
			return w.describe(pod)
		}
		return ""
	})
}

// usage returns the owners of an Instance's slots that are not free, sorted.
func (w *world) usage(instance string) []string {
	w.t.Helper()
	var owners []string
	for _, owner := range w.get("Instance", instance).Spec.DeviceUsage {
		if owner != "" {
			owners = append(owners, owner)
		}
	}
	slices.Sort(owners)
	return owners
}

// awaitUsage waits until exactly these owners have slots of an Instance, and returns how
// long it took.
func (w *world) awaitUsage(instance string, owners ...string) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%s is used by %q", instance, owners), func() string {
		if have := w.usage(instance); !slices.Equal(have, owners) {
			return fmt.Sprintf("by %q", have)
		}
		return ""
	})
}

// failedPods returns the failed Pods, with their reasons.
func (w *world) failedPods() string {
	w.t.Helper()
	var failed []string
	for _, pod := range w.list("Pod", "") {
		if pod.Status.Phase == "Failed" {
			failed = append(failed, fmt.Sprintf("%s: %s %s", pod.Metadata.Name, pod.Status.Reason, pod.Status.Message))
		}
	}
	return strings.Join(failed, "; ")
}
