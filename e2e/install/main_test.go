package install

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/charts/helm"
	"akri.sh/akri/e2e/akri"
	"akri.sh/akri/kubebox/cluster"
	"akri.sh/akri/kubebox/clustertest"
)

func TestMain(m *testing.M) { clustertest.Main(m) }

// timeout bounds how long a test waits for a condition. No test passes by timing out.
const timeout = 120 * time.Second

// world is a cluster with two nodes in which a test installs the chart.
type world struct {
	*cluster.Cluster
	t       *testing.T
	release helm.Release
	server  string
	client  *http.Client
	before  map[string]bool // all objects, before the first installation
}

// newWorld starts a cluster and loads Akri's images into its nodes.
func newWorld(t *testing.T) *world {
	t.Helper()
	programs, err := akri.Build(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	c := clustertest.Start(t, cluster.Config{Nodes: 2})
	if err := c.Load(t.Context(), programs.Images...); err != nil {
		t.Fatal(err)
	}
	w := &world{
		Cluster: c, t: t,
		release: helm.Release{Name: "akri", Namespace: akri.Namespace, Kubeconfig: c.Kubeconfig(), Timeout: timeout},
	}
	if w.server, w.client, err = akri.Connect(c.Kubeconfig()); err != nil {
		t.Fatal(err)
	}
	if w.before, err = akri.Objects(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			ctx, cancel := context.WithTimeout(context.Background(), timeout) // the test's own context has ended
			defer cancel()
			t.Log(akri.Evidence(ctx, c, held))
		}
	})
	return w
}

// step runs a step of the story, and ends the test if it fails: the later steps build on
// it.
func (w *world) step(name string, do func(t *testing.T)) {
	w.t.Helper()
	began := time.Now()
	outer := w.t
	succeeded := outer.Run(name, func(t *testing.T) {
		w.t = t
		defer func() { w.t = outer }()
		do(t)
	})
	if !succeeded {
		outer.FailNow()
	}
	outer.Logf("%-60s %5.1fs", name, time.Since(began).Seconds())
}

// kubectl runs kubectl and returns its output. It fails the test on an error.
func (w *world) kubectl(arguments ...string) string {
	w.t.Helper()
	out, err := w.Kubectl(w.t.Context(), arguments...)
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// apply applies a manifest.
func (w *world) apply(text string) {
	w.t.Helper()
	if _, err := w.KubectlInput(w.t.Context(), []byte(text), "apply", "--server-side", "-f", "-"); err != nil {
		w.t.Fatal(err)
	}
}

// eventually waits until check returns "".
func (w *world) eventually(what string, check func() string) {
	w.t.Helper()
	if complaint := poll(w.t.Context(), check); complaint != "" {
		w.t.Fatalf("%s: timed out after %v: %s", what, timeout, complaint)
	}
}

// poll calls check until it returns "", which poll returns. After the timeout, it returns
// the last complaint.
func poll(ctx context.Context, check func() string) string {
	for began := time.Now(); ; {
		complaint := check()
		if complaint == "" || ctx.Err() != nil || time.Since(began) > timeout {
			return complaint
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// object has the fields that the tests read, for all kinds.
type object struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name            string `json:"name"`
		UID             string `json:"uid"`
		ResourceVersion string `json:"resourceVersion"`
		Generation      int    `json:"generation"`
	} `json:"metadata"`
	Spec struct {
		DeviceUsage map[string]string `json:"deviceUsage"`
	} `json:"spec"`
	Status struct {
		Phase             string `json:"phase"`
		ContainerStatuses []struct {
			ContainerID  string `json:"containerID"`
			RestartCount int    `json:"restartCount"`
			Ready        bool   `json:"ready"`
		} `json:"containerStatuses"`
	} `json:"status"`
}

// list reads the objects of some kinds, separated by commas, in a namespace.
func (w *world) list(namespace, kinds string) []object {
	w.t.Helper()
	var list struct{ Items []object }
	if err := json.Unmarshal([]byte(w.kubectl("--namespace", namespace, "get", kinds, "--output=json")), &list); err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// awaitReady waits until a Configuration has this many devices and is Ready.
func (w *world) awaitReady(namespace, configuration string, devices int) {
	w.t.Helper()
	for _, wait := range []string{fmt.Sprintf("--for=jsonpath={.status.instances}=%d", devices), "--for=condition=Ready"} {
		w.kubectl("--namespace", namespace, "wait", "--timeout="+timeout.String(), "configuration/"+configuration, wait)
	}
}
