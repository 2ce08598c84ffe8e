// Package apitest gives tests a real API server: etcd and kube-apiserver as
// processes, with our CRDs installed. The binaries come from `make test`; a
// bare checkout skips such tests, saying so.
package apitest

import (
	"context"
	"crypto/rand"
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
	// assetsVariable names the folder of the binaries etcd and kube-apiserver.
	assetsVariable = "AKRI_TEST_ASSETS"
	// requiredVariable, if "1", turns the skip into a failure.
	requiredVariable = "AKRI_TEST_REQUIRED"
)

var shared struct {
	sync.Mutex
	environment *envtest.Environment
	config      *rest.Config
	err         error
}

// Run starts the tests of a package and stops the API server after them. A
// package that calls [Start] calls Run in its TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(apitest.Run(m)) }
func Run(m *testing.M) int {
	defer stop()
	return m.Run()
}

// Start returns the way to an API server, as administrator and without a limit
// of requests. There is one for each test binary, started by the first call.
func Start(t testing.TB) *rest.Config {
	t.Helper()
	assets := assets(t)

	shared.Lock()
	defer shared.Unlock()
	if shared.environment == nil {
		shared.environment = &envtest.Environment{
			BinaryAssetsDirectory:    assets,
			CRDDirectoryPaths:        []string{filepath.Join(root(), "config", "crd")},
			ErrorIfCRDPathMissing:    true,
			ControlPlaneStartTimeout: time.Minute,
			ControlPlaneStopTimeout:  time.Minute,
		}
		shared.config, shared.err = shared.environment.Start()
	}
	if shared.err != nil {
		t.Fatalf("apitest: start the API server from %s: %v", assets, shared.err)
	}
	config := rest.CopyConfig(shared.config)
	config.QPS = -1 // the API server's own fairness governs
	return config
}

// Namespace makes a namespace for one test and deletes it afterwards. No
// controller runs here, so what lies in it stays; names do not repeat.
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
		t.Fatalf("apitest: make namespace %s: %v", name, err)
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

// assets is the folder of the binaries; without them it skips the test.
func assets(t testing.TB) string {
	t.Helper()
	folder := os.Getenv(assetsVariable)
	if folder == "" {
		folder = filepath.Join(root(), "bin", "k8s")
	}
	for _, binary := range []string{"etcd", "kube-apiserver"} {
		if _, err := os.Stat(filepath.Join(folder, binary)); err == nil {
			continue
		}
		message := fmt.Sprintf("needs a real API server and %s is not in %s: run `make test`, which builds it, or set %s to its folder",
			binary, folder, assetsVariable)
		if os.Getenv(requiredVariable) == "1" {
			t.Fatal(message)
		}
		t.Skip(message)
	}
	return folder
}

// root is the folder of go.mod, at or above the package whose tests run.
func root() string {
	start, err := os.Getwd()
	if err != nil {
		return "."
	}
	for folder := start; ; folder = filepath.Dir(folder) {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder
		}
		if folder == filepath.Dir(folder) {
			return start
		}
	}
}
