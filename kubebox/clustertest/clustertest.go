package clustertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"akri.sh/akri/kubebox/build"
	"akri.sh/akri/kubebox/cluster"
)

// RequiredVariable is the environment variable that, if set to 1, makes a test that
// cannot run here fail instead of being skipped.
const RequiredVariable = "AKRI_E2E_REQUIRED"

// ClusterVariable is the environment variable that names the run directory of a cluster
// which tests use instead of a new one.
const ClusterVariable = "AKRI_E2E_CLUSTER"

// shared holds the cluster that [Shared] returns.
var shared struct {
	sync.Mutex
	cluster *cluster.Cluster
	config  cluster.Config
}

// Main runs the tests, stops the shared cluster and exits the process. TestMain calls it.
func Main(m *testing.M) {
	cluster.Reexec()
	status := m.Run()
	if shared.cluster != nil {
		if err := shared.cluster.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping the shared cluster:", err)
			status = max(status, 1)
		}
	}
	os.Exit(status)
}

// Start starts a cluster for one test, and stops it at the end of the test.
func Start(t testing.TB, config cluster.Config) *cluster.Cluster {
	t.Helper()
	c := start(t, config)
	t.Cleanup(func() {
		report(t, c)
		if err := c.Stop(); err != nil {
			t.Errorf("stopping the cluster: %v", err)
		}
	})
	return c
}

// Existing returns the running cluster in the run directory that [ClusterVariable] names
// and true, or else the cluster that the tests of this run share, and false; see
// [Shared].
func Existing(t testing.TB, config cluster.Config) (c *cluster.Cluster, existing bool) {
	t.Helper()
	dir := os.Getenv(ClusterVariable)
	if dir == "" {
		return Shared(t, config), false
	}
	c, err := cluster.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c, true
}

// Shared returns the cluster that the tests of this run share. The first call starts
// it. All calls must use the same number of nodes. Each test must use its own namespace
// and clean up after itself.
func Shared(t testing.TB, config cluster.Config) *cluster.Cluster {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.cluster == nil {
		shared.cluster, shared.config = start(t, config), config
	}
	if config.Nodes != shared.config.Nodes {
		t.Fatalf("the shared cluster has %d nodes, but this test needs %d", shared.config.Nodes, config.Nodes)
	}
	t.Cleanup(func() { report(t, shared.cluster) })
	return shared.cluster
}

// start starts a cluster, or skips the test if no cluster can run here.
func start(t testing.TB, config cluster.Config) *cluster.Cluster {
	t.Helper()
	if config.Progress == nil {
		config.Progress = func(text string) { t.Log(text) }
	}
	c, err := cluster.Start(t.Context(), config)
	if err == nil {
		return c
	}
	_, impossible := errors.AsType[*cluster.NoNodesError](err)
	_, missing := errors.AsType[*build.MissingError](err)
	if impossible || missing {
		Skip(t, err)
	}
	t.Fatal(err)
	return nil
}

// Skip skips a test that cannot run here, or fails it if [RequiredVariable] is 1.
func Skip(t testing.TB, reason any) {
	t.Helper()
	if os.Getenv(RequiredVariable) == "1" {
		t.Fatal(reason)
	}
	t.Skip(reason)
}

// NeedServices skips a test unless Pods of a cluster reach Services; see [Skip].
func NeedServices(t testing.TB, c *cluster.Cluster) {
	t.Helper()
	if !c.RoutesServices() {
		Skip(t, "the cluster does not route Services: install nftables")
	}
}

// report fails the test if a component exited by itself, and keeps the logs if the test
// failed.
func report(t testing.TB, c *cluster.Cluster) {
	if _, err := os.Stat(c.Dir()); err != nil {
		return // the test has stopped the cluster
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	components, err := c.Components(ctx)
	if err != nil {
		t.Errorf("the cluster does not respond: %v", err)
	}
	for _, s := range components {
		if s.Cause != "" {
			t.Errorf("%s %s", s.Name, s.Cause)
		}
	}
	if !t.Failed() {
		return
	}
	for _, file := range c.LogFiles() {
		if err := keep(t, c.Dir(), file); err != nil {
			t.Log(err)
		}
	}
	t.Logf("the cluster's logs are in %s (go test -artifacts keeps them)", t.ArtifactDir())
}

// keep copies a log file to the test's artifacts.
func keep(t testing.TB, dir, file string) error {
	name, err := filepath.Rel(dir, file)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(t.ArtifactDir(), strings.ReplaceAll(name, "/", "-")), content, 0o644)
}
