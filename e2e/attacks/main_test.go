package attacks

import (
	"context"
	"fmt"
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
const timeout = 30 * time.Second

// akriSystem is Akri's own namespace.
const akriSystem = akri.Namespace

// install holds the result of installing Akri in the shared cluster.
var install struct {
	sync.Once
	api *api
	err error
}

// world is a cluster with Akri, as seen by a test in a namespace of its own.
type world struct {
	*cluster.Cluster
	t         testing.TB
	namespace string
	api       *api
	admin     *user
}

// worlds counts the namespaces: each has another name, even if a test runs twice.
var worlds atomic.Int32

// newWorld returns the shared cluster, with a new namespace for the test. At the end of
// the test, none of Akri's containers may have restarted.
func newWorld(t testing.TB) *world {
	t.Helper()
	c, existing := clustertest.Existing(t, cluster.Config{Nodes: 1})
	install.Do(func() {
		if install.api, install.err = newAPI(c.Kubeconfig()); install.err != nil || existing {
			return
		}
		programs, err := akri.Build(t.Context(), os.Stderr)
		if err == nil {
			err = akri.Install(t.Context(), c, programs)
		}
		install.err = err
	})
	if install.err != nil {
		t.Fatal(install.err)
	}
	w := &world{Cluster: c, t: t, api: install.api, namespace: fmt.Sprintf("attack-%d-%d", os.Getpid()%1000, worlds.Add(1))}
	w.admin = &user{w: w, name: "admin"}
	w.must(w.admin.create(parse("{apiVersion: v1, kind: Namespace, metadata: {name: " + w.namespace + "}}")))
	restarts := w.restarts()
	w.cleanup(func(after *world) { after.leave(restarts) })
	return w
}

// cleanup calls f when the test has ended. The test's own context has ended too: f gets
// a world with another.
func (w *world) cleanup(f func(after *world)) {
	w.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(contextWithout(w.t), 2*timeout)
		defer cancel()
		after := *w
		after.t = contextTB{w.t, ctx}
		after.admin = &user{w: &after, name: "admin"}
		f(&after)
	})
}

// contextTB replaces the context of a test, which has ended when the test cleans up.
type contextTB struct {
	testing.TB
	ctx context.Context
}

func (t contextTB) Context() context.Context { return t.ctx }

// contextWithout returns a context for what is undone after the end of a test.
func contextWithout(t testing.TB) context.Context { return context.WithoutCancel(t.Context()) }

// leave deletes the test's namespace and checks that Akri was not disturbed.
func (w *world) leave(restarts map[string]int) {
	if w.t.Failed() {
		w.t.Log(akri.Evidence(w.t.Context(), w.Cluster, w.namespace))
	}
	// Configurations first: while a namespace is deleted, agents cannot withdraw
	// their Instances in order.
	w.deleteAll("Configuration")
	w.deleteAll("Instance")
	w.admin.delete("Namespace", "", w.namespace)
	for container, count := range w.restarts() {
		if before, known := restarts[container]; known && count != before {
			w.t.Errorf("%s has restarted: %s", container, w.lastState(container))
		}
	}
}

// deleteAll deletes all objects of a kind in the namespace.
func (w *world) deleteAll(kindName string) {
	for _, o := range w.list(kindName, w.namespace) {
		if finalizers, _ := o.at("metadata", "finalizers").([]any); len(finalizers) > 0 {
			w.admin.patch(kindName, w.namespace, o.name(), "metadata: {finalizers: null}")
		}
		w.admin.delete(kindName, w.namespace, o.name())
	}
}

// must fails the test if a request did not succeed.
func (w *world) must(a answer) answer {
	w.t.Helper()
	if !a.ok() {
		w.t.Fatal(a)
	}
	return a
}

// refuse fails the test if a request was not refused with all of these texts.
func (w *world) refuse(what string, a answer, texts ...string) {
	w.t.Helper()
	if !a.refused() {
		w.t.Errorf("%s is not refused: %v", what, a)
		return
	}
	for _, text := range texts {
		if !a.contains(text) {
			w.t.Errorf("%s is refused without %q: %v", what, text, a)
		}
	}
}

// eventually waits until check returns "".
func (w *world) eventually(what string, check func() string) {
	w.t.Helper()
	w.within(timeout, what, check)
}

// within waits until check returns "", and fails the test after a limit.
func (w *world) within(limit time.Duration, what string, check func() string) time.Duration {
	w.t.Helper()
	return clustertest.Eventually(w.t, limit, what, check)
}

// find returns an object, or nil if there is none.
func (w *world) find(kindName, name string) object {
	w.t.Helper()
	return w.findIn(kindName, w.namespace, name)
}

// findIn returns an object of a namespace, or nil if there is none.
func (w *world) findIn(kindName, namespace, name string) object {
	w.t.Helper()
	a := w.admin.get(kindName, namespace, name)
	if a.code == 404 {
		return nil
	}
	return w.must(a).object()
}

// list returns the objects of a kind in a namespace; all of the cluster's if it is
// empty.
func (w *world) list(kindName, namespace string) []object {
	w.t.Helper()
	var objects []object
	items, _ := w.must(w.admin.get(kindName, namespace, "")).object().at("items").([]any)
	for _, item := range items {
		found := object(item.(map[string]any))
		found["apiVersion"], found["kind"] = kinds[kindName].version, kindName // the items of a list do not have them
		objects = append(objects, found)
	}
	return objects
}

// observed waits until the controller has reported on the current generation of a
// Configuration, and returns it.
func (w *world) observed(name string) object {
	w.t.Helper()
	var found object
	w.eventually("the controller's report on "+name, func() string {
		found = w.find("Configuration", name)
		if seen, want := found.number("status", "observedGeneration"), found.number("metadata", "generation"); seen < want {
			return fmt.Sprintf("generation %d of %d", seen, want)
		}
		return ""
	})
	return found
}

// await waits for a condition of a Configuration to begin with a text, and returns
// the condition.
func (w *world) await(name, kindName, prefix string) string {
	w.t.Helper()
	var found string
	w.observed(name)
	w.eventually(kindName+" of "+name, func() string {
		found = w.find("Configuration", name).condition(kindName)
		if !strings.HasPrefix(found, prefix) {
			return found
		}
		return ""
	})
	return found
}

// instances waits for a number of Instances of a Configuration, and returns them.
func (w *world) instances(name string, count int) []object {
	w.t.Helper()
	var found []object
	w.eventually(fmt.Sprintf("%d Instances of %s", count, name), func() string {
		found = nil
		for _, instance := range w.list("Instance", w.namespace) {
			if instance.text("spec", "configurationName") == name && !instance.terminating() {
				found = append(found, instance)
			}
		}
		if len(found) != count {
			return fmt.Sprintf("there are %d", len(found))
		}
		return ""
	})
	return found
}

// sub returns the world of a subtest, in the same namespace.
func (w *world) sub(t *testing.T) *world {
	inner := *w
	inner.t = t
	inner.admin = &user{w: &inner, name: "admin"}
	return &inner
}

// converged waits until the controller has made an object for a new Configuration
// with a new device: it has then seen everything that was written before.
func (w *world) converged(name string) {
	w.t.Helper()
	w.must(w.admin.create(configuration(name, spec{devices: []string{name}, instance: []string{configMap("{{INSTANCE_NAME}}", "v")}})))
	w.instances(name, 1)
	w.await(name, "Ready", "True")
	w.must(w.admin.delete("Configuration", w.namespace, name))
}

// absent fails the test if an object exists, or any object of a kind in the
// namespace if name is empty.
func (w *world) absent(kindName, name string) {
	w.t.Helper()
	for _, o := range w.list(kindName, w.namespace) {
		if name == "" || o.name() == name {
			w.t.Errorf("%s %s exists: %.2000s", kindName, o.name(), o.json())
		}
	}
}
