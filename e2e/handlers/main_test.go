package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
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

// bridgeAddress is the address of the programs that [world.peer] runs.
const bridgeAddress = "10.99.0.1"

// install holds the result of installing Akri in the shared cluster.
var install struct {
	sync.Once
	programs akri.Programs
	err      error

	mu       sync.Mutex
	handlers map[string]error

	examples    sync.Once
	examplesErr error
}

// world is a cluster with two nodes, Akri and one handler, as seen by a test in its own
// namespace.
type world struct {
	*cluster.Cluster
	t         testing.TB
	ctx       context.Context
	namespace string
}

// worlds counts the namespaces: each has another name, even if a test runs twice.
var worlds atomic.Int32

// newWorld returns the shared cluster with a handler from config/ installed, and with a new
// namespace for the test.
func newWorld(t testing.TB, handler string) *world {
	t.Helper()
	c, existing := clustertest.Existing(t, cluster.Config{Nodes: 2})
	install.Do(func() {
		install.handlers = map[string]error{}
		install.programs, install.err = akri.Build(t.Context(), os.Stderr)
		if install.err == nil && !existing {
			install.err = akri.Install(t.Context(), c, install.programs)
		}
	})
	if install.err != nil {
		t.Fatal(install.err)
	}
	w := &world{Cluster: c, t: t, ctx: t.Context(), namespace: fmt.Sprintf("handlers-%d-%d", os.Getpid()%1000, worlds.Add(1))}
	w.installHandler(handler)
	w.kubectl("create", "namespace", w.namespace)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*timeout)
		defer cancel()
		after := *w
		after.ctx = ctx // the test's own context has ended
		after.leave(handler)
	})
	return w
}

// installHandler installs a handler from config/, unless a test has done that before.
func (w *world) installHandler(name string) {
	w.t.Helper()
	install.mu.Lock()
	defer install.mu.Unlock()
	err, installed := install.handlers[name]
	if !installed {
		err = akri.InstallHandler(w.ctx, w.Cluster, install.programs, name)
		install.handlers[name] = err
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// loadExamples loads the virtual devices and the brokers of examples/ into the nodes.
func (w *world) loadExamples() {
	w.t.Helper()
	install.examples.Do(func() {
		install.examplesErr = akri.InstallExamples(w.ctx, w.Cluster, install.programs, os.Stderr)
	})
	if install.examplesErr != nil {
		w.t.Fatal(install.examplesErr)
	}
}

// plc returns the path of the virtual PLC. It also loads the examples' brokers.
func (w *world) plc() string {
	w.t.Helper()
	w.loadExamples()
	return filepath.Join(install.programs.Dir, "examples", "devices", "plc")
}

// leave deletes what the test has created.
func (w *world) leave(handler string) {
	if w.t.Failed() {
		w.t.Log(akri.Evidence(w.ctx, w.Cluster, w.namespace))
		logs, _ := w.Kubectl(w.ctx, "--namespace", akri.Namespace, "logs", "--tail=200", "--all-pods", "daemonset/akri-"+handler+"-discovery")
		w.t.Logf("the handler's log:\n%s", logs)
	}
	w.kubectl("delete", "configurations", "--all", "--wait=true", "--timeout=60s")
	w.kubectl("delete", "namespace", w.namespace, "--wait=false")
}

// kubectl runs kubectl in the test's namespace and returns its output.
func (w *world) kubectl(arguments ...string) string {
	w.t.Helper()
	output, err := w.Kubectl(w.ctx, append([]string{"--namespace", w.namespace}, arguments...)...)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(output)
}

// apply applies manifests in the test's namespace.
func (w *world) apply(manifests string) {
	w.t.Helper()
	_, err := w.KubectlInput(w.ctx, []byte(manifests), "--namespace", w.namespace, "apply", "--server-side", "-f", "-")
	if err != nil {
		w.t.Fatal(err)
	}
}

// instanceView is an Instance, as far as the tests read it.
type instanceView struct {
	Metadata struct {
		Name string `json:"name"`
		UID  string `json:"uid"`
	} `json:"metadata"`
	Spec struct {
		Nodes            []string          `json:"nodes"`
		BrokerProperties map[string]string `json:"brokerProperties"`
	} `json:"spec"`
}

// instances returns the Instances of the test's namespace by name.
func (w *world) instances() map[string]instanceView {
	w.t.Helper()
	var list struct {
		Items []instanceView `json:"items"`
	}
	if err := json.Unmarshal([]byte(w.kubectl("get", "instances", "--output=json")), &list); err != nil {
		w.t.Fatal(err)
	}
	found := map[string]instanceView{}
	for _, i := range list.Items {
		found[i.Metadata.Name] = i
	}
	return found
}

// await waits until the Instances have these values of a property, and returns them.
func (w *world) await(property string, values ...string) map[string]instanceView {
	w.t.Helper()
	var found map[string]instanceView
	want := slices.Sorted(slices.Values(values))
	w.eventually("Instances with "+property, func() string {
		found = w.instances()
		var got []string
		for i := range maps.Values(found) {
			got = append(got, i.Spec.BrokerProperties[property])
		}
		slices.Sort(got)
		if slices.Equal(got, want) {
			return ""
		}
		return fmt.Sprintf("%s is %q, want %q", property, got, want)
	})
	return found
}

// eventually waits until check returns "", and returns how long it took.
func (w *world) eventually(what string, check func() string) time.Duration {
	w.t.Helper()
	return clustertest.Eventually(w.t, timeout, what, check)
}

// peer runs a program in the nodes' network, at bridgeAddress, until stop is called or the
// test ends. The program sees the machine's files.
func (w *world) peer(env []string, arguments ...string) (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	ended := make(chan error, 1)
	var output strings.Builder
	go func() {
		ended <- w.Exec(ctx, cluster.Command{Args: arguments, Env: env, Stdout: &output, Stderr: &output})
	}()
	stop = sync.OnceFunc(func() {
		exitedByItself := false
		select {
		case err := <-ended:
			exitedByItself = true
			ended <- err
		default:
		}
		cancel()
		err := <-ended
		if exitedByItself && (err != nil || w.t.Failed()) && !errors.Is(err, context.Canceled) {
			w.t.Errorf("%q ended by itself: %v\n%s", arguments, err, output.String())
		} else if w.t.Failed() {
			w.t.Logf("output of %q:\n%s", arguments, output.String())
		}
	})
	w.t.Cleanup(stop)
	return stop
}
