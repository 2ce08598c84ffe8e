package slots

import (
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
