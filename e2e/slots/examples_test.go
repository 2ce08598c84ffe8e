package slots

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"akri.sh/akri/kubebox/build"
	"akri.sh/akri/kubebox/clustertest"
)

var (
	handlerName   = regexp.MustCompile(`name: (udev|onvif)\b`)
	details       = regexp.MustCompile(`(?m)^    discoveryDetails: .*\n(      .*\n)*`)
	exampleImages = regexp.MustCompile(`image: registry\.example/\S+`)
)

// example returns a file of an example. A Configuration gets devices of debugEcho and the
// images of the tests, and all objects the test's namespace.
func (w *world) example(name, file, device string) string {
	w.t.Helper()
	root, err := build.Root()
	if err != nil {
		w.t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(root, "examples", name, file))
	if err != nil {
		w.t.Fatal(err)
	}
	text := handlerName.ReplaceAllString(string(content), "name: debugEcho")
	text = details.ReplaceAllString(text, fmt.Sprintf("    discoveryDetails: \"descriptions: [%s]\"\n", device))
	text = exampleImages.ReplaceAllString(text, "image: akri.local/workload:1")
	return strings.ReplaceAll(text, "namespace: machines", "namespace: "+w.namespace)
}

// The example shared-cameras: each of two replicas has both cameras.
func TestExampleSharedCameras(t *testing.T) {
	clustertest.Full(t)
	t.Parallel()
	w := newWorld(t)
	w.apply(w.example("shared-cameras", "configuration.yaml", "cam0, cam1"))
	instances := w.awaitInstances("camera", []string{"cam0", "cam1"}, node1, node2)
	w.eventually("two containers with both cameras", func() string {
		both := 0
		for _, u := range w.usersOf("cam0") {
			if slices.Equal(u.devices, []string{"cam0", "cam1"}) {
				both++
			}
		}
		if both != 2 {
			return fmt.Sprintf("%v; failed: %s", w.usersOf("cam0"), w.failedPods())
		}
		return ""
	})
	if owners := w.allUsage(instances); len(owners) != 4 {
		t.Errorf("slots are owned by %q, want four owners", owners)
	}
	w.consistent()
}

// The example daemonset-pinned: each node has an adapter, and the Pod of each node gets
// the one of its own.
func TestExampleDaemonSet(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	shared := w.localDevices()
	defer shared()
	w.apply(w.example("daemonset-pinned", "configuration.yaml", "serial0"))
	w.eventually("a gateway on each node", func() string {
		daemonSet, found := w.find("DaemonSet", "serial-gateway")
		if !found || daemonSet.Status.NumberReady != 2 {
			return fmt.Sprintf("%d are ready; failed: %s", daemonSet.Status.NumberReady, w.failedPods())
		}
		return ""
	})
	for _, instance := range w.list("Instance", "akri.sh/configuration=serial") {
		node := instance.Spec.Nodes[0]
		w.awaitUsage(instance.Metadata.Name, "C:0:"+node)
		hash := strings.ToUpper(strings.TrimPrefix(instance.Metadata.Name, "serial-"))
		for _, u := range w.usersOf("serial0") {
			if _, has := u.environment[property+"_"+hash]; has != (u.node == node) {
				t.Errorf("%v has the adapter of %s: %v", u, node, has)
			}
		}
	}
	w.delete("Configuration", "serial")
	w.eventually("the pods are gone", func() string { return namesOf(w.list("Pod", "")) })
}

// virtualMachines is a CRD that stands for KubeVirt's.
const virtualMachines = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: virtualmachines.kubevirt.io, annotations: {api-approved.kubernetes.io: unapproved}}
spec:
  group: kubevirt.io
  scope: Namespaced
  names: {kind: VirtualMachine, listKind: VirtualMachineList, plural: virtualmachines, singular: virtualmachine}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// The example kubevirt-vm, without KubeVirt: the test creates the Pods that KubeVirt
// would create for the virtual machines. Each gets a device.
func TestExampleVirtualMachines(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	w.apply(virtualMachines)
	remove := w.undo(func(after *world) {
		after.delete("CustomResourceDefinition", "virtualmachines.kubevirt.io")
		after.delete("ClusterRole", "akri-controller-kubevirt")
	})
	w.apply(w.example("kubevirt-vm", "rbac.yaml", ""))
	w.eventually("admission", func() string { // the webhook notices the kind, and roles are aggregated
		if err := w.tryApply(w.example("kubevirt-vm", "configuration.yaml", "dongle0, dongle1")); err != nil {
			return err.Error()
		}
		return ""
	})
	instances := w.awaitInstances("dongle", []string{"dongle0", "dongle1"}, node1, node2)
	for _, instance := range instances {
		w.eventually("the machine", func() string {
			if _, found := w.find("VirtualMachine", instance); !found {
				return "there is none"
			}
			return ""
		})
		w.launch(instance)
	}
	if owners := w.allUsage(instances); len(owners) != 2 || nodeOf(owners[0]) == owners[0] {
		t.Errorf("slots are owned by %q, want two ids", owners)
	}
	for device, instance := range instances {
		if users := w.usersOf(device); len(users) != 1 || len(users[0].devices) != 1 {
			t.Errorf("%s is used by %v, want one container that has no other", instance, users)
		}
		w.patch("VirtualMachine", instance, "{status: {ready: true}}")
	}
	w.kubectl("wait", "--for=condition=Ready", "--timeout="+timeout.String(), "configuration/dongle")
	w.delete("Configuration", "dongle")
	w.eventually("the machines are deleted", func() string { return namesOf(w.list("VirtualMachine", "")) })
	remove()
}

// launch creates a Pod as KubeVirt creates it for a virtual machine: on the nodes of its
// affinity, with the resources of its host devices.
func (w *world) launch(machine string) {
	w.t.Helper()
	_, text, err := w.send("GET", pathOf("VirtualMachine", w.namespace)+"/"+machine, "", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	var o struct {
		Spec struct {
			Template struct {
				Spec struct {
					Affinity json.RawMessage `json:"affinity"`
					Domain   struct {
						Devices struct {
							HostDevices []struct {
								DeviceName string `json:"deviceName"`
							} `json:"hostDevices"`
						} `json:"devices"`
					} `json:"domain"`
				} `json:"spec"`
			} `json:"template"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(text, &o); err != nil {
		w.t.Fatal(err)
	}
	var limits []string
	for _, device := range o.Spec.Template.Spec.Domain.Devices.HostDevices {
		limits = append(limits, limit(strings.TrimPrefix(device.DeviceName, "akri.sh/"), 1))
	}
	compute := container{name: "compute", resources: strings.Join(limits, ", ")}
	name := "virt-launcher-" + machine
	w.podWith(name, fmt.Sprintf("{terminationGracePeriodSeconds: 1, affinity: %s, containers: [%s]}",
		o.Spec.Template.Spec.Affinity, compute.manifest()))
	w.container(name, "compute")
}
