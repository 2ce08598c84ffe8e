package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const example = "akri-debug-echo-foo"

// applyExample applies the example debug-echo.
func (w *world) applyExample() {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(install.programs.Root, "examples", "debug-echo", "configuration.yaml"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.apply(string(text))
}

// The example debug-echo on a real kubelet, from device to Service and back.
func TestExample(t *testing.T) {
	w := newWorld(t)
	w.applyExample()
	w.awaitReady(example, 2)

	pods := w.list("pods")
	if len(pods) != 2 {
		t.Fatalf("%d Pods, want 2", len(pods))
	}
	for _, pod := range pods {
		if pod.Status.Phase != "Running" {
			t.Errorf("Pod %s is %s", pod.Metadata.Name, pod.Status.Phase)
		}
		if environment := w.kubectl("logs", pod.Metadata.Name); !strings.Contains(environment, "DEBUG_ECHO_DESCRIPTION=foo") {
			t.Errorf("environment of %s lacks the device's property:\n%s", pod.Metadata.Name, environment)
		}
	}
	for _, instance := range w.list("instances") {
		if used(instance) != 1 || instance.Spec.Capacity != 2 {
			t.Errorf("deviceUsage of %s: %v, want one slot of two held", instance.Metadata.Name, instance.Spec.DeviceUsage)
		}
	}
	services := w.list("services")
	checkServices(t, example, services, pods)

	t.Run("a deleted Service is recreated", func(t *testing.T) {
		victim := services[0]
		w.kubectl("delete", "service", victim.Metadata.Name)
		took := w.eventually("a new Service", func() string {
			for _, service := range w.list("services") {
				if service.Metadata.Name == victim.Metadata.Name && service.Metadata.UID != victim.Metadata.UID {
					return ""
				}
			}
			return "not recreated"
		})
		t.Logf("recreated after %v, including kubectl", took.Round(time.Millisecond))
	})

	t.Run("devices are unplugged and plugged in again", func(t *testing.T) {
		w.unplug()
		for _, kind := range []string{"instances", "pods", "services"} {
			took := w.eventually("deletion of "+kind, func() string { return w.names(kind) })
			t.Logf("no %s after a further %v", kind, took.Round(time.Millisecond))
		}
		w.plugIn()
		w.awaitReady(example, 2)
		if pods := w.list("pods"); len(pods) != 2 {
			t.Errorf("%d Pods, want 2", len(pods))
		}
	})

	t.Run("a deleted Configuration deletes its objects", func(t *testing.T) {
		w.kubectl("delete", "configuration", example)
		for _, kind := range []string{"instances", "pods", "services"} {
			w.eventually("deletion of "+kind, func() string { return w.names(kind) })
		}
	})
}

// checkServices checks that a Configuration has a Service for each device and one for all.
func checkServices(t *testing.T, configuration string, services, pods []object) {
	t.Helper()
	if len(services) != 3 {
		t.Fatalf("%d Services, want 3", len(services))
	}
	for _, service := range services {
		var selector map[string]string
		if err := json.Unmarshal(service.Spec.Selector, &selector); err != nil {
			t.Fatal(err)
		}
		want := 1
		if service.Metadata.Name == configuration+"-svc" {
			want = 2
		}
		if found := selected(selector, pods); found != want {
			t.Errorf("Service %s selects %d Pods by %v, want %d", service.Metadata.Name, found, selector, want)
		}
	}
}

// selected counts the Pods that a selector matches.
func selected(selector map[string]string, pods []object) int {
	count := 0
	for _, pod := range pods {
		matches := len(selector) > 0
		for key, value := range selector {
			matches = matches && pod.Metadata.Labels[key] == value
		}
		if matches {
			count++
		}
	}
	return count
}

// A workload that Akri does not manage requests a device by its resource name.
func TestDeploymentThatRequestsADevice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(`
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: echo}
spec:
  discoveryHandler: {name: debugEcho, discoveryDetails: "descriptions: [foo0]"}
`)
	w.awaitReady("echo", 1)
	instance := w.names("instances")
	w.apply(fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: user}
spec:
  strategy: {type: Recreate} # there is one slot for the old pod and the new
  selector: {matchLabels: {app: user}}
  template:
    metadata: {labels: {app: user}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: user
        image: akri.local/workload:1
        resources: {limits: {"akri.sh/%s": "1"}}
`, instance))
	w.kubectl("rollout", "status", "--timeout=60s", "deployment/user")
	if environment := w.kubectl("logs", "deployment/user"); !strings.Contains(environment, "DEBUG_ECHO_DESCRIPTION=foo0") {
		t.Errorf("environment of the container:\n%s", environment)
	}
	if usage := w.list("instances")[0].Spec.DeviceUsage; usage[instance+"-0"] != "node1" {
		t.Errorf("deviceUsage %v, want the slot held by node1", usage)
	}

	// Its Pod is replaced several times: the slot passes from one to the next.
	for range 3 {
		w.kubectl("rollout", "restart", "deployment/user")
		w.kubectl("rollout", "status", "--timeout=60s", "deployment/user")
		w.kubectl("delete", "pod", "--selector=app=user", "--wait=false")
		w.kubectl("wait", "--for=jsonpath={.status.availableReplicas}=1", "--timeout=60s", "deployment/user")
	}
	for _, pod := range w.list("pods") {
		if pod.Status.Phase == "Failed" {
			t.Errorf("Pod %s was rejected by the node", pod.Metadata.Name)
		}
	}
	w.kubectl("delete", "deployment", "user")
	took := w.eventually("a free slot", func() string {
		if instance := w.list("instances")[0]; used(instance) > 0 {
			return fmt.Sprint(instance.Spec.DeviceUsage)
		}
		return ""
	})
	t.Logf("slot free %v after the Deployment's deletion", took.Round(time.Millisecond))
}

// twinCRD defines a kind that Akri does not know.
const twinCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: twins.e2e.akri.sh}
spec:
  group: e2e.akri.sh
  scope: Namespaced
  names: {kind: Twin, listKind: TwinList, plural: twins, singular: twin}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

// twinRole grants the controller access to that kind.
const twinRole = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: twins-for-akri
  labels: {akri.sh/aggregate-to-controller: "true"}
rules:
- {apiGroups: [e2e.akri.sh], resources: [twins], verbs: [get, list, watch, create, patch, delete]}
`

const anyKindConfiguration = `
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: any}
spec:
  discoveryHandler: {name: debugEcho, discoveryDetails: "descriptions: [foo0, foo1]"}
  instanceBrokerResources:
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: "{{INSTANCE_NAME}}"}
    data: {description: "{{INSTANCE_PROPERTIES.DEBUG_ECHO_DESCRIPTION}}", nodes: "on {{NODES}}"}
  - apiVersion: apps/v1
    kind: Deployment
    metadata: {name: "{{INSTANCE_NAME}}"}
    spec:
      replicas: "{{ len NODES }}"
      selector: {matchLabels: "{{LABEL_SELECTOR}}"}
      template:
        spec:
          terminationGracePeriodSeconds: 1
          containers:
          - name: broker
            image: akri.local/workload:1
            resources: {limits: {"{{RESOURCE_NAME}}": "1"}}
  - apiVersion: e2e.akri.sh/v1
    kind: Twin
    metadata: {name: "{{INSTANCE_NAME}}"}
    spec: {nodes: "{{NODES}}"}
`

// Kinds other than Pods and Services, including one whose CRD is created after the
// controller has started.
func TestAnyKind(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(twinCRD)
	// Admission names the permission that the controller lacks. Once it is granted, the
	// Configuration is admitted.
	rejection := w.applyRejected(anyKindConfiguration)
	for _, want := range []string{"e2e.akri.sh", "twins", "akri.sh/aggregate-to-controller"} {
		if !strings.Contains(rejection, want) {
			t.Errorf("the rejection lacks %q: %s", want, rejection)
		}
	}
	w.apply(twinRole)
	w.eventually("admission", func() string { return w.tryApply(anyKindConfiguration) }) // roles are aggregated asynchronously
	w.awaitReady("any", 2)
	for _, instance := range w.list("instances") {
		name := instance.Metadata.Name
		if spec := w.kubectl("get", "twin", name, "--output=jsonpath={.spec.nodes}"); spec != `["node1"]` {
			t.Errorf("Twin %s: spec.nodes = %s", name, spec)
		}
		if data := w.kubectl("get", "configmap", name, "--output=jsonpath={.data.nodes}"); data != "on node1" {
			t.Errorf("ConfigMap %s: data.nodes = %s", name, data)
		}
		if environment := w.kubectl("logs", "deployment/"+name); !strings.Contains(environment, "DEBUG_ECHO_DESCRIPTION=foo") {
			t.Errorf("environment of Deployment %s:\n%s", name, environment)
		}
	}
	w.kubectl("delete", "configuration", "any")
	for _, kind := range []string{"instances", "twins", "deployments", "pods"} {
		w.eventually("deletion of "+kind, func() string { return w.names(kind) })
	}
	w.kubectl("delete", "crd", "twins.e2e.akri.sh")
	w.kubectl("delete", "clusterrole", "twins-for-akri")
}
