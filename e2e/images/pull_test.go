package images

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"

	"akri.sh/akri/charts/helm"
	"akri.sh/akri/kubebox/cluster"
	"akri.sh/akri/kubebox/clustertest"
	"akri.sh/akri/release/images"
)

// host is the address of the registry, on the bridge that nodes reach, and prefix what
// the names of images in it begin with.
const (
	host   = "10.99.0.1:5000"
	prefix = host + "/mirror/akri"
)

// Environment variables that make the test's executable another program, which runs in
// the cluster's network: the registry, or the one that publishes an image from a
// directory.
const (
	serveVariable = "AKRI_TEST_SERVE_REGISTRY"
	pushVariable  = "AKRI_TEST_PUSH"
)

func TestMain(m *testing.M) {
	if os.Getenv(serveVariable) != "" {
		log.Fatal(http.ListenAndServe(host, registry.New(registry.WithReferrersSupport(true))))
	}
	if dir := os.Getenv(pushVariable); dir != "" {
		name, err := images.Push(context.Background(), dir, prefix, filepath.Base(dir), true)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(name)
		os.Exit(0)
	}
	clustertest.Main(m)
}

// node is a cluster with one node that pulls images from the registry.
type node struct {
	*cluster.Cluster
	built
	t *testing.T
}

// testPulled publishes the images, and runs them on a node.
func testPulled(t *testing.T, b built) {
	n := node{t: t, built: b, Cluster: clustertest.Start(t, cluster.Config{Nodes: 1})}
	n.serve()
	for _, name := range []string{"discovery", "agent", "controller"} {
		n.push(name)
	}
	t.Run("by tag", func(t *testing.T) { n.run(t, "tag", prefix+"/discovery:"+version, "Always") })
	t.Run("by digest", func(t *testing.T) { n.run(t, "digest", prefix+"/discovery@"+b.digests["discovery"], "Always") })
	t.Run("by platform", func(t *testing.T) {
		n.run(t, "platform", prefix+"/discovery@"+b.digests["discovery "+images.Native()], "Always")
	})
	t.Run("for another platform", n.testOtherPlatform)
	t.Run("loaded from an archive", n.testLoaded)
	t.Run("installed", n.testInstalled)
}

// serve starts the registry, and tells the node's containerd that it does not use TLS.
func (n node) serve() {
	ctx, cancel := context.WithCancel(n.t.Context())
	ended := make(chan error, 1)
	var output bytes.Buffer
	go func() {
		command := cluster.Command{Args: []string{executable(n.t)}, Env: []string{serveVariable + "=1"}, Stdout: &output, Stderr: &output}
		ended <- n.Exec(ctx, command)
	}()
	n.t.Cleanup(func() {
		cancel()
		<-ended
		if n.t.Failed() {
			n.t.Logf("the registry's log:\n%s", output.String())
		}
	})
	hosts := fmt.Sprintf("server = 'http://%s'\n", host)
	dir := "/etc/containerd/certs.d/" + host
	n.exec(n.t, "node1", strings.NewReader(hosts), nil, "sh", "-c", "mkdir -p "+dir+" && cat > "+dir+"/hosts.toml")
	for deadline := time.Now().Add(time.Minute); ; {
		connection, err := n.Dial(n.t.Context(), "node1", "tcp", host)
		if err == nil {
			connection.Close()
			return
		}
		if time.Now().After(deadline) {
			n.t.Fatalf("the registry does not respond: %v", err)
		}
		<-time.After(50 * time.Millisecond)
	}
}

// executable returns the path of the test's executable.
func executable(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// exec runs a command in a node, or in the control plane's namespaces, and returns its
// output.
func (n node) exec(t *testing.T, where string, input io.Reader, env []string, arguments ...string) string {
	t.Helper()
	var output bytes.Buffer
	command := cluster.Command{Node: where, Args: arguments, Env: env, Stdin: input, Stdout: &output}
	if err := n.Exec(t.Context(), command); err != nil {
		t.Fatal(err)
	}
	return output.String()
}

// push publishes an image.
func (n node) push(name string) {
	n.t.Helper()
	got := n.exec(n.t, "", nil, []string{pushVariable + "=" + filepath.Join(n.dir, name)}, executable(n.t))
	if want := prefix + "/" + name + ":" + version + "@" + n.digests[name] + "\n"; got != want {
		n.t.Fatalf("pushed %s, want %s", got, want)
	}
}

// run runs the program of an image in a Pod without rights, and checks what it prints.
func (n node) run(t *testing.T, name, reference, policy string) {
	t.Helper()
	pod := fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  restartPolicy: Never
  automountServiceAccountToken: false
  securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: program
    image: %s
    imagePullPolicy: %s
    args: [--version]
    securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
`, name, reference, policy)
	if _, err := n.KubectlInput(t.Context(), []byte(pod), "apply", "--server-side", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Kubectl(t.Context(), "wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/"+name, "--timeout=60s"); err != nil {
		events, _ := n.Kubectl(t.Context(), "describe", "pod", name)
		t.Fatalf("%v\n%s", err, events)
	}
	output, err := n.Kubectl(t.Context(), "logs", name)
	if problem := checkVersion(output, images.Native()); err != nil || problem != "" {
		t.Errorf("%s: %v%s", reference, err, problem)
	}
}

// testOtherPlatform pulls the image for another platform than the node's: the layers of
// the node's are not downloaded.
func (n node) testOtherPlatform(t *testing.T) {
	ctr := []string{"ctr", "--address=/run/containerd/containerd.sock", "--namespace=other"}
	n.exec(t, "node1", nil, nil, append(ctr, "images", "pull", "--local", "--hosts-dir=/etc/containerd/certs.d",
		"--platform=linux/arm64", prefix+"/discovery:"+version)...)
	content := n.exec(t, "node1", nil, nil, append(ctr, "content", "ls", "--quiet")...)
	for platform, want := range map[string]bool{"linux/arm64": true, "linux/amd64": false} {
		manifest, err := n.open(t, "discovery", platform).Manifest()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(content, manifest.Layers[0].Digest.String()); got != want {
			t.Errorf("the image for %s was downloaded: %v, want %v; the node has\n%s", platform, got, want, content)
		}
	}
}

// testLoaded loads an archive into the node, from which a Pod runs without a registry.
func (n node) testLoaded(t *testing.T) {
	o := images.Options{Root: "../..", Dir: n.dir, Version: version, Revision: commit, Images: []string{"discovery"}}
	archives, err := images.Archive(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Load(t.Context(), archives...); err != nil {
		t.Fatal(err)
	}
	n.run(t, "loaded", images.Registry+"/discovery:"+version, "Never")
}

// testInstalled installs the chart, by digest, and runs its tests.
func (n node) testInstalled(t *testing.T) {
	digests := helm.Values{}
	for _, name := range []string{"agent", "controller", "discovery"} {
		digests[name] = n.digests[name]
	}
	akri := helm.Release{Name: "akri", Namespace: "akri-system", Kubeconfig: n.Kubeconfig(), Timeout: 2 * time.Minute}
	_, err := akri.Install(t.Context(), helm.Values{
		"image":    helm.Values{"registry": prefix, "digests": digests},
		"handlers": helm.Values{"debugEcho": helm.Values{"enabled": true}},
	})
	if err == nil {
		err = akri.Test(t.Context(), io.Discard)
	}
	if err != nil {
		pods, _ := n.Kubectl(t.Context(), "describe", "pods", "--namespace=akri-system")
		t.Fatalf("%v\n%s", err, pods)
	}
	var pods struct {
		Items []struct {
			Status struct {
				ContainerStatuses []struct{ ImageID string }
			}
		}
	}
	text, err := n.Kubectl(t.Context(), "get", "pods", "--namespace=akri-system", "--output=json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &pods); err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		for _, status := range pod.Status.ContainerStatuses {
			if !strings.HasPrefix(status.ImageID, prefix+"/") {
				t.Errorf("a container runs %s", status.ImageID)
			}
		}
	}
}
