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

// patience is how long a test waits for what must come. It bounds failures; no
// test passes by it.
const patience = 90 * time.Second

// world is a cluster with Akri in it, seen from one namespace.
type world struct {
	*cluster.Cluster
	t         *testing.T
	namespace string
}

var install struct {
	sync.Once
	programs akri.Programs
	err      error
}

// enter gives a test a namespace of its own in the shared cluster.
func enter(t *testing.T) *world {
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
		ctx, cancel := context.WithTimeout(context.Background(), patience) // the test's own has ended
		defer cancel()
		w.online()
		if t.Failed() {
			t.Log(akri.Evidence(ctx, c, w.namespace))
		}
		if _, err := c.Kubectl(ctx, "delete", "namespace", w.namespace); err != nil {
			t.Error(err)
		}
	})
	return w
}

// kubectl runs kubectl in the test's namespace and fails the test if it fails.
func (w *world) kubectl(arguments ...string) string {
	w.t.Helper()
	out, err := w.Kubectl(w.t.Context(), append([]string{"--namespace", w.namespace}, arguments...)...)
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// apply applies a YAML text in the test's namespace.
func (w *world) apply(text string) {
	w.t.Helper()
	if refusal := w.tried(text); refusal != "" {
		w.t.Fatal(refusal)
	}
}

// tried applies a YAML text and returns why that failed; "" if it did not.
func (w *world) tried(text string) string {
	w.t.Helper()
	if _, err := w.KubectlInput(w.t.Context(), []byte(text), "--namespace", w.namespace, "apply", "--server-side", "-f", "-"); err != nil {
		return err.Error()
	}
	return ""
}

// refused applies a YAML text, which must fail, and returns what was said.
func (w *world) refused(text string) string {
	w.t.Helper()
	refusal := w.tried(text)
	if refusal == "" {
		w.t.Errorf("admitted:\n%s", text)
	}
	return refusal
}

// object is what of any object the tests read.
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

// names are those of the objects of a kind, joined by spaces.
func (w *world) names(kind string) string {
	w.t.Helper()
	var names []string
	for _, item := range w.list(kind) {
		names = append(names, item.Metadata.Name)
	}
	return strings.Join(names, " ")
}

// eventually waits until check returns "", and returns how long that took.
func (w *world) eventually(what string, check func() string) time.Duration {
	w.t.Helper()
	began := time.Now()
	for {
		complaint := check()
		took := time.Since(began)
		if complaint == "" {
			return took
		}
		if took > patience {
			w.t.Fatalf("%s: not after %v: %s", what, patience, complaint)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// wait waits for a condition of a Configuration.
func (w *world) wait(condition, configuration string) {
	w.t.Helper()
	if _, err := w.Kubectl(w.t.Context(), "--namespace", w.namespace, "wait", "--timeout="+patience.String(),
		"--for=condition="+condition, "configuration/"+configuration); err != nil {
		w.t.Fatal(err)
	}
}

// settled waits until as many devices are there, with all that belongs to them.
func (w *world) settled(configuration string, devices int) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%d Instances", devices), func() string {
		if found := len(w.list("instances")); found != devices {
			return fmt.Sprintf("there are %d", found)
		}
		return ""
	})
	w.wait("Ready", configuration)
}

// availability is the file that takes debugEcho's devices away.
func (w *world) availability() string {
	return filepath.Join(w.AkriDir("node1"), "debug-echo", "debug-echo-availability.txt")
}

func (w *world) offline() {
	w.t.Helper()
	if err := os.WriteFile(w.availability(), []byte("OFFLINE\n"), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) online() {
	w.t.Helper()
	if err := os.WriteFile(w.availability(), []byte("ONLINE\n"), 0o644); err != nil {
		w.t.Error(err)
	}
}

// used counts an Instance's slots that somebody holds.
func used(instance object) int {
	count := 0
	for _, owner := range instance.Spec.DeviceUsage {
		if owner != "" {
			count++
		}
	}
	return count
}
