package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"

	"akri.sh/akri/e2e/akri"
	"akri.sh/akri/kubebox/build"
	"akri.sh/akri/kubebox/cluster"
	"akri.sh/akri/kubebox/clustertest"
)

func TestMain(m *testing.M) { clustertest.Main(m) }

// TestCurrentCluster runs the demo in a cluster that is somebody else's, with images from a
// registry, and takes it out again: the cluster is as before.
func TestCurrentCluster(t *testing.T) {
	clustertest.Full(t)
	c := clustertest.Start(t, cluster.Config{Nodes: 2})
	useContext(t, c)
	address := serveRegistry(t, c)
	before := state(t, c)

	t.Run("nothing is added without consent", func(t *testing.T) {
		err := upCurrent(t.Context(), options{registry: address})
		if err == nil || !strings.Contains(err.Error(), "YES=1") {
			t.Errorf("without a terminal: %v, want an error that names YES=1", err)
		}
		if err := downCurrent(t.Context()); err == nil || !strings.Contains(err.Error(), "is not in the cluster") {
			t.Errorf("down without up: %v, want an error", err)
		}
		assertSame(t, before, c)
	})
	t.Run("up", func(t *testing.T) {
		if err := upCurrent(t.Context(), options{registry: address, yes: true}); err != nil {
			t.Fatal(err)
		}
		images, err := c.Kubectl(t.Context(), "get", "pods", "--all-namespaces", "--output=jsonpath={.items[*].spec.containers[*].image}")
		if err != nil {
			t.Fatal(err)
		}
		for image := range strings.FieldsSeq(string(images)) {
			if !strings.HasPrefix(image, address+"/") && !strings.HasPrefix(image, "nginx:") {
				t.Errorf("a Pod has the image %s, which is not from the registry", image)
			}
		}
	})
	t.Run("up again", func(t *testing.T) {
		if err := upCurrent(t.Context(), options{registry: address, yes: true}); err != nil {
			t.Error(err)
		}
	})
	t.Run("a Configuration of somebody else is not deleted", func(t *testing.T) {
		const foreign = `
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: mine, namespace: default}
spec: {discoveryHandler: {name: debugEcho, discoveryDetails: "descriptions: []"}}
`
		if _, err := c.KubectlInput(t.Context(), []byte(foreign), "apply", "--server-side", "-f", "-"); err != nil {
			t.Fatal(err)
		}
		if err := downCurrent(t.Context()); err == nil || !strings.Contains(err.Error(), "default/mine") {
			t.Errorf("down: %v, want an error that names the Configuration", err)
		}
		if _, err := c.Kubectl(t.Context(), "--namespace=default", "delete", "configuration", "mine"); err != nil {
			t.Error(err)
		}
	})
	t.Run("down", func(t *testing.T) {
		if err := downCurrent(t.Context()); err != nil {
			t.Fatal(err)
		}
		assertSame(t, before, c)
	})
}

// useContext makes a cluster that of the current context.
func useContext(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	bin, err := build.DefaultDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	t.Setenv("KUBECONFIG", c.Kubeconfig())
	for _, variable := range []string{"HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"} {
		t.Setenv(variable, t.TempDir())
	}
}

// serveRegistry serves a registry at an address that is the same on this machine and on
// every node, and returns the address.
func serveRegistry(t *testing.T, c *cluster.Cluster) string {
	t.Helper()
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listeners := []net.Listener{listener}
	for _, node := range c.Nodes() {
		inside, err := c.Listen(t.Context(), node, "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		listeners = append(listeners, inside)
	}
	server := &http.Server{Handler: handler}
	for _, each := range listeners {
		go func() { _ = server.Serve(each) }() // ends when the server is closed
	}
	t.Cleanup(func() { server.Close() })
	return listener.Addr().String()
}

// state describes everything in a cluster that the demo could leave behind: all objects,
// and the resources that the nodes offer. Kubelets count resources without a plugin in
// capacity for five more minutes, but offer none of them.
func state(t *testing.T, c *cluster.Cluster) []string {
	t.Helper()
	objects, err := akri.Objects(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := c.Kubectl(t.Context(), "get", "nodes", "--output=json")
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.Sorted(maps.Keys(objects))
	var list struct {
		Items []struct {
			Metadata struct{ Labels, Annotations map[string]string }
			Status   struct{ Allocatable map[string]string }
		}
	}
	if err := json.Unmarshal(nodes, &list); err != nil {
		t.Fatal(err)
	}
	for _, node := range list.Items {
		maps.DeleteFunc(node.Status.Allocatable, func(_, quantity string) bool { return quantity == "0" })
		if text := fmt.Sprint(node); strings.Contains(text, "akri.sh/") {
			lines = append(lines, "a node with labels, annotations or resources of Akri: "+text)
		}
	}
	return lines
}

// assertSame fails the test unless a cluster has its state of before, at the latest after
// a while: Kubernetes cleans up after CRDs in the background.
func assertSame(t *testing.T, before []string, c *cluster.Cluster) {
	t.Helper()
	const patience = 30 * time.Second
	for began := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		after := state(t, c)
		if slices.Equal(before, after) {
			return
		}
		if time.Since(began) > patience {
			t.Fatalf("the cluster has changed\nbefore\n%s\nafter\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
		}
	}
}

// TestAgreement checks what is consent, and that Ctrl+C at the question ends it at once, as everything else is no.
func TestAgreement(t *testing.T) {
	const refused = "nothing was added"
	for input, want := range map[string]string{
		"y\n": "", "yes\n": "", "Y\n": "", "\n": refused, "n\n": refused, "yesterday\n": refused, "": refused,
	} {
		question := &asked{}
		err := answered(t.Context(), t, question, func(answer *os.File) {
			_, _ = answer.WriteString(input)
			answer.Close()
		})
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%q: %v, want %q", input, err, want)
		}
	}
	ctx, interrupt := context.WithCancel(t.Context())
	question := &asked{then: interrupt} // and no answer
	if err := answered(ctx, t, question, func(*os.File) {}); err == nil || err.Error() != "interrupted: "+refused {
		t.Errorf("Ctrl+C: %v", err)
	}
	if question.text.String() != "Continue? [y/N] \n" {
		t.Errorf("the question is %q", question.text.String())
	}
}

// asked receives a question, and then calls a function, unless it is nil.
type asked struct {
	text strings.Builder
	then func()
}

func (a *asked) Write(text []byte) (int, error) {
	if a.then != nil {
		a.then()
	}
	return a.text.Write(text)
}

// answered returns what agree returns for an answer.
func answered(ctx context.Context, t *testing.T, question io.Writer, answer func(*os.File)) error {
	t.Helper()
	defer func(before io.Writer) { progress = before }(progress)
	progress = question
	near, far, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	defer far.Close()
	answer(far)
	return agree(ctx, false, near)
}

// present returns a lookPath that finds only these programs.
func present(programs ...string) func(string) (string, error) {
	return func(name string) (string, error) {
		if slices.Contains(programs, name) {
			return "/usr/bin/" + name, nil
		}
		return "", fmt.Errorf("%s: not found", name)
	}
}

// The way for images to reach the nodes depends on the cluster and on the programs that
// are installed.
func TestChooseDelivery(t *testing.T) {
	hostname, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	here := func(kubelet, runtime string) []siteNode {
		return []siteNode{{Name: "a", Hostname: hostname, Kubelet: kubelet, Runtime: runtime}}
	}
	for name, test := range map[string]struct {
		site     site
		registry string
		programs []string
		want     string // the description, or "" for an error
	}{
		"a registry is preferred": {
			site{Context: "kind-edge"}, "r.example/akri/", []string{"kind"}, "2 images, pushed to r.example/akri",
		},
		"kind": {
			site{Context: "kind-edge"}, "", []string{"kind"}, "kind load image-archive ARCHIVE --name edge",
		},
		"kind is not installed": {site{Context: "kind-edge"}, "", nil, ""},
		"k3d": {
			site{Context: "k3d-edge"}, "", []string{"k3d"}, "k3d image import ARCHIVE --cluster edge",
		},
		"minikube": {
			site{Nodes: []siteNode{{Minikube: "edge"}}}, "", []string{"minikube"}, "minikube image load ARCHIVE --profile edge",
		},
		"k3s on this machine": {
			site{Nodes: here("v1.34.1+k3s1", "containerd://2.1.4-k3s1")}, "", []string{"k3s", "ctr"},
			"k3s ctr --namespace=k8s.io images import ARCHIVE",
		},
		"containerd on this machine": {
			site{Nodes: here("v1.34.1", "containerd://2.1.4")}, "", []string{"ctr"}, "ctr --namespace=k8s.io images import ARCHIVE",
		},
		"CRI-O on this machine": {site{Nodes: here("v1.34.1", "cri-o://1.34.0")}, "", []string{"ctr"}, ""},
		"more nodes than this machine": {
			site{Nodes: append(here("v1.34.1", "containerd://2.1.4"), siteNode{Name: "b"})}, "", []string{"ctr"}, "",
		},
		"another machine": {
			site{Nodes: []siteNode{{Name: "b", Hostname: "b.example", Runtime: "containerd://2.1.4"}}}, "", []string{"ctr"}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			way, err := chooseDelivery(test.site, test.registry, present(test.programs...))
			switch {
			case test.want == "" && (err == nil || !strings.Contains(err.Error(), "REGISTRY=")):
				t.Errorf("%v, %v, want an error that names REGISTRY", way, err)
			case test.want != "" && (err != nil || !strings.Contains(way.describe(2), test.want)):
				t.Errorf("%v, %v, want %q", way, err, test.want)
			}
		})
	}
}

// CRDs that exist before the demo are neither changed nor removed.
func TestCRDValues(t *testing.T) {
	for name, test := range map[string]struct {
		site site
		want string
	}{
		"there are none":                   {site{}, "crds.keep=false"},
		"they exist":                       {site{CRDs: true}, "crds.enabled=false"},
		"the demo has brought them before": {site{CRDs: true, Demo: brought}, "crds.keep=false"},
		"the demo has found them before":   {site{CRDs: true, Demo: found}, "crds.enabled=false"},
	} {
		if got := test.site.crdValues(); !slices.Equal(got, []string{test.want}) {
			t.Errorf("%s: %q, want %s", name, got, test.want)
		}
	}
}
