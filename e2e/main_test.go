package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"akri.sh/akri/e2e/akri"
	"akri.sh/akri/kubebox/cluster"
	"akri.sh/akri/kubebox/clustertest"
)

func TestMain(m *testing.M) { clustertest.Main(m) }

// timeout bounds how long a test waits for a condition. No test passes by timing out.
const timeout = 90 * time.Second

// world is a cluster with Akri installed, as seen by a test in its own namespace.
type world struct {
	*cluster.Cluster
	t         *testing.T
	namespace string
}

// install holds the result of installing Akri in the shared cluster.
var install struct {
	sync.Once
	programs akri.Programs
	err      error
}

// newWorld returns the shared cluster, with a new namespace for the test. Tests that unplug
// devices, restart programs or count what others create do not run in parallel.
func newWorld(t *testing.T) *world {
	t.Helper()
	c := clustertest.Shared(t, cluster.Config{Nodes: 1})
	install.Do(func() {
		if install.programs, install.err = akri.Build(t.Context(), os.Stderr); install.err == nil {
			install.err = akri.Install(t.Context(), c, install.programs)
		}
	})
	if install.err != nil {
		t.Fatal(install.err)
	}
	w := &world{Cluster: c, t: t, namespace: "test-" + strings.ToLower(t.Name())}
	w.kubectl("create", "namespace", w.namespace)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout) // the test's own context has ended
		defer cancel()
		w.plugIn()
		if t.Failed() {
			t.Log(akri.Evidence(ctx, c, w.namespace))
		}
		if _, err := c.Kubectl(ctx, "delete", "namespace", w.namespace); err != nil {
			t.Error(err)
		}
	})
	return w
}

// kubectl runs kubectl in the test's namespace and returns its output. It fails the
// test on an error.
func (w *world) kubectl(arguments ...string) string {
	w.t.Helper()
	out, err := w.Kubectl(w.t.Context(), append([]string{"--namespace", w.namespace}, arguments...)...)
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// apply applies a manifest in the test's namespace.
func (w *world) apply(text string) {
	w.t.Helper()
	if rejection := w.tryApply(text); rejection != "" {
		w.t.Fatal(rejection)
	}
}

// tryApply applies a manifest and returns the error, or "" if it succeeded.
func (w *world) tryApply(text string) string {
	w.t.Helper()
	if _, err := w.KubectlInput(w.t.Context(), []byte(text), "--namespace", w.namespace, "apply", "--server-side", "-f", "-"); err != nil {
		return err.Error()
	}
	return ""
}

// applyRejected applies a manifest, which must be rejected, and returns the error.
func (w *world) applyRejected(text string) string {
	w.t.Helper()
	rejection := w.tryApply(text)
	if rejection == "" {
		w.t.Errorf("not rejected:\n%s", text)
	}
	return rejection
}

// object has the fields that the tests read, for all kinds.
type object struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name              string            `json:"name"`
		UID               string            `json:"uid"`
		Labels            map[string]string `json:"labels"`
		DeletionTimestamp string            `json:"deletionTimestamp"`
		OwnerReferences   []struct {
			UID        string `json:"uid"`
			Controller bool   `json:"controller"`
		} `json:"ownerReferences"`
	} `json:"metadata"`
	Spec struct {
		Selector    json.RawMessage   `json:"selector"`
		Nodes       []string          `json:"nodes"`
		Capacity    int               `json:"capacity"`
		DeviceUsage map[string]string `json:"deviceUsage"`
	} `json:"spec"`
	Data   map[string]string `json:"data"`
	Status struct {
		Phase             string `json:"phase"`
		ContainerStatuses []struct {
			ContainerID  string `json:"containerID"`
			RestartCount int    `json:"restartCount"`
			Ready        bool   `json:"ready"`
		} `json:"containerStatuses"`
	} `json:"status"`
}

// controllerUID returns the UID of the object's controller owner, or "" if it has none.
func (o object) controllerUID() string {
	for _, owner := range o.Metadata.OwnerReferences {
		if owner.Controller {
			return owner.UID
		}
	}
	return ""
}

// listAll reads all objects of some kinds, separated by commas.
func (w *world) listAll(kinds string) []object {
	w.t.Helper()
	var list struct{ Items []object }
	if err := json.Unmarshal([]byte(w.kubectl("get", kinds, "--output=json")), &list); err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// list reads the objects of a kind that are not being deleted.
func (w *world) list(kind string) []object {
	w.t.Helper()
	var alive []object
	for _, item := range w.listAll(kind) {
		if item.Metadata.DeletionTimestamp == "" {
			alive = append(alive, item)
		}
	}
	return alive
}

// names returns the names of the objects of a kind, joined by spaces.
func (w *world) names(kind string) string {
	w.t.Helper()
	var names []string
	for _, item := range w.list(kind) {
		names = append(names, item.Metadata.Name)
	}
	return strings.Join(names, " ")
}

// eventually waits until check returns "", and returns how long it took.
func (w *world) eventually(what string, check func() string) time.Duration {
	w.t.Helper()
	return clustertest.Eventually(w.t, timeout, what, check)
}

// wait waits for a condition of a Configuration.
func (w *world) wait(condition, configuration string) {
	w.t.Helper()
	if _, err := w.Kubectl(w.t.Context(), "--namespace", w.namespace, "wait", "--timeout="+timeout.String(),
		"--for=condition="+condition, "configuration/"+configuration); err != nil {
		w.t.Fatal(err)
	}
}

// awaitReady waits until there is an Instance for each of the devices and the
// Configuration is Ready.
func (w *world) awaitReady(configuration string, devices int) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%d Instances", devices), func() string {
		if found := len(w.list("instances")); found != devices {
			return fmt.Sprintf("there are %d", found)
		}
		return ""
	})
	w.wait("Ready", configuration)
}

// availability returns the file that makes debugEcho's devices disappear.
func (w *world) availability() string {
	return filepath.Join(w.AkriDir("node1"), "debug-echo", "debug-echo-availability.txt")
}

// unplug makes debugEcho's devices disappear.
func (w *world) unplug() {
	w.t.Helper()
	if err := os.WriteFile(w.availability(), []byte("OFFLINE\n"), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// plugIn makes debugEcho's devices appear again.
func (w *world) plugIn() {
	w.t.Helper()
	if err := os.WriteFile(w.availability(), []byte("ONLINE\n"), 0o644); err != nil {
		w.t.Error(err)
	}
}

// used counts an Instance's held slots.
func used(instance object) int {
	count := 0
	for _, owner := range instance.Spec.DeviceUsage {
		if owner != "" {
			count++
		}
	}
	return count
}
