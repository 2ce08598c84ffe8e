package slots

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"akri.sh/akri/e2e/akri"
	"akri.sh/akri/kubebox/cluster"
	"akri.sh/akri/kubebox/clustertest"
)

func TestMain(m *testing.M) { clustertest.Main(m) }

// timeout bounds how long a test waits for a condition. No test passes by timing out.
const timeout = 60 * time.Second

// The nodes of the cluster.
const (
	node1 = "node1"
	node2 = "node2"
)

// install holds the result of installing Akri in the shared cluster.
var install struct {
	sync.Once
	server string
	client *http.Client
	err    error
}

// world is a cluster with two nodes and Akri, as seen by a test in its own namespace.
type world struct {
	*cluster.Cluster
	t         testing.TB
	ctx       context.Context
	namespace string
	server    string
	client    *http.Client
	processes *processes
	instances *atomic.Pointer[[]object] // as last read to look for violations
}

// worlds counts the namespaces: each has another name, even if a test runs twice.
var worlds atomic.Int32

// newWorld returns the shared cluster, with a new namespace for the test.
func newWorld(t testing.TB) *world {
	t.Helper()
	c, existing := clustertest.Existing(t, cluster.Config{Nodes: 2})
	install.Do(func() {
		install.server, install.client, install.err = akri.Connect(c.Kubeconfig())
		if install.err != nil || existing {
			return
		}
		var programs akri.Programs
		if programs, install.err = akri.Build(t.Context(), os.Stderr); install.err == nil {
			install.err = akri.Install(t.Context(), c, programs)
		}
		if install.err == nil {
			// A running garbage collector takes up to half a minute to notice new kinds.
			install.err = c.Do(t.Context(), cluster.Restart, "kube-controller-manager")
		}
	})
	if install.err != nil {
		t.Fatal(install.err)
	}
	w := &world{
		Cluster: c, t: t, ctx: t.Context(), server: install.server, client: install.client,
		namespace: fmt.Sprintf("slots-%d-%d", os.Getpid()%1000, worlds.Add(1)), processes: newProcesses(c.Name()),
		instances: &atomic.Pointer[[]object]{},
	}
	w.ready() // the test before may have stopped components
	w.apply(fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", w.namespace))
	// The API server rejects Pods until the namespace has it.
	w.eventually("the namespace's ServiceAccount", func() string {
		if _, err := w.Kubectl(w.ctx, "get", "--namespace", w.namespace, "serviceaccount", "default"); err != nil {
			return err.Error()
		}
		return ""
	})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*timeout)
		defer cancel()
		after := *w
		after.ctx = ctx // the test's own context has ended
		after.leave()
	})
	w.eventually("admission of Configurations", w.admits)
	return w
}

// admits returns "" if Akri's webhook admits a Configuration.
func (w *world) admits() string {
	err := w.tryApply(`
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: admitted}
spec: {discoveryHandler: {name: debugEcho, discoveryDetails: "descriptions: []"}}
`, "dryRun=All")
	if err != nil {
		return err.Error()
	}
	return ""
}

// leave deletes what the test has created and waits until the devices are gone.
func (w *world) leave() {
	if w.t.Failed() {
		w.t.Log(akri.Evidence(w.ctx, w.Cluster, w.namespace))
	}
	w.healthy()
	for _, kind := range []string{"Deployment", "DaemonSet", "Pod", "Configuration"} {
		w.deleteAll(kind)
	}
	w.eventually("deletion of the Instances", func() string { return namesOf(w.list("Instance", "")) })
	w.delete("Namespace", w.namespace)
}

// step runs a part of the test as a subtest in the same namespace.
func (w *world) step(name string, do func(w *world)) bool {
	w.t.Helper()
	t, ok := w.t.(*testing.T)
	if !ok {
		w.t.Fatal("a benchmark has no subtests")
	}
	return t.Run(name, func(t *testing.T) {
		inner := *w
		inner.t, inner.ctx = t, t.Context()
		do(&inner)
	})
}

// eventually waits until check returns "", and returns how long it took.
func (w *world) eventually(what string, check func() string) time.Duration {
	w.t.Helper()
	return w.within(timeout, what, check)
}

// within waits until check returns "", fails the test after a limit, and returns how
// long it took.
func (w *world) within(limit time.Duration, what string, check func() string) time.Duration {
	w.t.Helper()
	return clustertest.Eventually(w.t, limit, what, check)
}

// envOr returns the value of an environment variable, or else a default.
func envOr(variable, fallback string) string {
	if text := os.Getenv(variable); text != "" {
		return text
	}
	return fallback
}

// throughout checks for some time that check returns "".
func (w *world) throughout(duration time.Duration, what string, check func() string) {
	w.t.Helper()
	for began := time.Now(); time.Since(began) < duration; time.Sleep(20 * time.Millisecond) {
		if complaint := check(); complaint != "" {
			w.t.Fatalf("%s: after %v: %s", what, time.Since(began).Round(time.Millisecond), complaint)
		}
	}
}

// namesOf returns the names of objects, joined by spaces.
func namesOf(objects []object) string {
	var names []string
	for _, o := range objects {
		names = append(names, o.Metadata.Name)
	}
	return strings.Join(names, " ")
}
