package apitest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const (
	// assetsVariable names the directory with the binaries etcd and kube-apiserver.
	assetsVariable = "AKRI_TEST_ASSETS"
	// requiredVariable, if "1", makes a skip a failure.
	requiredVariable = "AKRI_TEST_REQUIRED"
)

var shared struct {
	sync.Mutex
	environment *envtest.Environment
	config      *rest.Config
	err         error
}

// Run runs the tests of a package and then stops the API server. A package that uses
// this package calls Run in its TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(apitest.Run(m)) }
func Run(m *testing.M) int {
	defer stop()
	return m.Run()
}

// Start returns the configuration of a client of the API server, with administrator
// rights and without rate limit. The first call starts the API server.
func Start(t testing.TB) *rest.Config {
	t.Helper()
	assets := assets(t, "etcd", "kube-apiserver")

	shared.Lock()
	defer shared.Unlock()
	if shared.environment == nil {
		shared.environment = &envtest.Environment{
			BinaryAssetsDirectory:    assets,
			CRDDirectoryPaths:        []string{filepath.Join(root(), "config", "crd")},
			ErrorIfCRDPathMissing:    true,
			CRDInstallOptions:        envtest.CRDInstallOptions{MaxTime: Timeout},
			ControlPlaneStartTimeout: Timeout,
			ControlPlaneStopTimeout:  Timeout,
		}
		shared.config, shared.err = start(shared.environment, shared.environment.Start)
	}
	if shared.err != nil {
		t.Fatalf("apitest: start the API server from %s: %v", assets, shared.err)
	}
	config := rest.CopyConfig(shared.config)
	config.QPS = -1 // the API server's priority and fairness limits requests
	return config
}

// Fresh starts another API server without Akri's CRDs, for a test that looks at the whole
// cluster or needs other CRDs. It stops when the test ends.
func Fresh(t testing.TB) *rest.Config {
	t.Helper()
	environment := &envtest.Environment{
		BinaryAssetsDirectory:    assets(t, "etcd", "kube-apiserver"),
		ControlPlaneStartTimeout: Timeout,
		ControlPlaneStopTimeout:  Timeout,
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Errorf("apitest: stop the API server: %v", err)
		}
	})
	config, err := start(environment, environment.Start)
	if err != nil {
		t.Fatalf("apitest: start an API server: %v", err)
	}
	config.QPS = -1
	return config
}

// start starts an API server, and waits until the namespace default exists. The method
// Start of the environment waits for that for five seconds only, which a busy machine
// exceeds: it is then called again, for the API server that runs.
func start(environment *envtest.Environment, once func() (*rest.Config, error)) (*rest.Config, error) {
	deadline := time.Now().Add(Timeout)
	config, err := once()
	for errors.Is(err, context.DeadlineExceeded) && environment.Config != nil && time.Now().Before(deadline) {
		environment.UseExistingCluster = new(true)
		config, err = once()
	}
	environment.UseExistingCluster = nil // Stop stops the processes
	return config, err
}

// Namespace creates a namespace for one test and deletes it afterwards. Without a
// namespace controller, its objects remain.
func Namespace(t testing.TB, config *rest.Config) string {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatalf("apitest: %v", err)
	}
	namespaces := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	name := "test-" + strings.ToLower(rand.Text()[:8])
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
	}}
	if _, err := namespaces.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatalf("apitest: create namespace %s: %v", name, err)
	}
	t.Cleanup(func() {
		if err := namespaces.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			t.Logf("apitest: delete namespace %s: %v", name, err)
		}
	})
	return name
}

func stop() {
	shared.Lock()
	defer shared.Unlock()
	if shared.environment == nil {
		return
	}
	if err := shared.environment.Stop(); err != nil {
		fmt.Fprintf(os.Stderr, "apitest: stop the API server: %v\n", err)
	}
}

// Kubectl returns the path of kubectl, of the version of the API server.
func Kubectl(t testing.TB) string {
	t.Helper()
	return filepath.Join(assets(t, "kubectl"), "kubectl")
}

// assets returns the directory that has the binaries. Without them it skips the test.
func assets(t testing.TB, binaries ...string) string {
	t.Helper()
	dir := os.Getenv(assetsVariable)
	if dir == "" {
		dir = filepath.Join(root(), "bin", "k8s")
	}
	for _, binary := range binaries {
		if _, err := os.Stat(filepath.Join(dir, binary)); err == nil {
			continue
		}
		message := fmt.Sprintf("needs an API server, but %s is not in %s: run `make test`, which builds it, or set %s to its directory",
			binary, dir, assetsVariable)
		if os.Getenv(requiredVariable) == "1" {
			t.Fatal(message)
		}
		t.Skip(message)
	}
	return dir
}

// root returns the directory of go.mod.
func root() string {
	start, err := os.Getwd()
	if err != nil {
		return "."
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return start
		}
	}
}
