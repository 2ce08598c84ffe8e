package cluster_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/kubebox/build"
	"akri.sh/akri/kubebox/cluster"
	"akri.sh/akri/kubebox/clustertest"
	"akri.sh/akri/kubebox/image"
)

func TestMain(m *testing.M) {
	cluster.Reexec()
	if dir := os.Getenv(starterVariable); dir != "" {
		startAndWait(dir)
	}
	clustertest.Main(m)
}

const pod = `
apiVersion: v1
kind: Pod
metadata: {name: broker}
spec:
  containers:
  - name: broker
    image: nginx:stable-alpine
    env: [{name: GREETING, value: hello}]
    resources: {limits: {cpu: 200m, memory: 64Mi}}
    readinessProbe: {httpGet: {port: 6052}, periodSeconds: 1}
`

// oneNode is a cluster with one node that runs the Pod broker.
type oneNode struct{ *cluster.Cluster }

// TestOneNode tests all features in a single cluster, because starting one takes seconds.
func TestOneNode(t *testing.T) {
	before := snapshotMachine(t)
	audit := filepath.Join(t.TempDir(), "audit.log")
	c := oneNode{clustertest.Start(t, cluster.Config{Nodes: 1, AuditLog: audit})}
	procs := descendants(t, supervisorOf(t, c.Dir()))
	if _, err := c.KubectlInput(t.Context(), []byte(pod), "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	c.awaitPod(t, "0")

	t.Run("a pod has its environment and logs", func(t *testing.T) {
		if logs := c.kubectl(t, "logs", "broker"); !strings.Contains(logs, "GREETING=hello") {
			t.Errorf("the log is %s", logs)
		}
	})
	t.Run("a pod answers at its address", c.testDial)
	t.Run("a test can listen inside", c.testListen)
	t.Run("a Service can be reached from the machine", c.testForward)
	t.Run("a command runs in the node, with input and exit status", c.testExec)
	t.Run("output and errors go to the same writer", c.testExecSameWriter)
	t.Run("a command is killed when its context ends", c.testExecCanceled)
	t.Run("directories of the node are visible on the machine", c.testDirectories)
	t.Run("an image can be loaded", c.testLoad)
	t.Run("components can be restarted", c.testRestarts)
	t.Run("the audit log records requests", func(t *testing.T) { assertAudited(t, audit, "create", "pods") })

	components, err := c.Components(t.Context())
	if err != nil || len(components) != 9 {
		t.Errorf("components are %+v, %v", components, err)
	}
	for _, s := range components {
		if s.State != "running" {
			t.Errorf("at the end, %s is %s: %s", s.Name, s.State, s.Cause)
		}
	}
	procs = append(procs, descendants(t, supervisorOf(t, c.Dir()))...)
	if len(procs) < 10 {
		t.Fatalf("found only %d processes: the test misses some of the cluster's processes", len(procs))
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	assertGone(t, procs)
	assertNothingLeft(t, c.Dir(), c.Name())
	before.assertSame(t)
}

func (c oneNode) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := c.Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// do performs an action, which must succeed.
func (c oneNode) do(t *testing.T, action cluster.Action, component string) {
	t.Helper()
	if err := c.Do(t.Context(), action, component); err != nil {
		t.Fatal(err)
	}
}

// awaitRecovery waits until the cluster is ready and the Pod is ready with the given
// number of restarts.
func (c oneNode) awaitRecovery(t *testing.T, restarts string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := c.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	c.awaitPod(t, restarts)
}

// awaitPod waits until the Pod is ready with the given number of restarts.
func (c oneNode) awaitPod(t *testing.T, restarts string) {
	t.Helper()
	eventually(t, 30*time.Second, "the pod is ready after "+restarts+" restarts", func() bool {
		got, err := c.Kubectl(t.Context(), "get", "pod", "broker",
			"-o", "jsonpath={.status.containerStatuses[0].ready} {.status.containerStatuses[0].restartCount}")
		return err == nil && string(got) == "true "+restarts
	})
}

func (c oneNode) testDial(t *testing.T) {
	address := net.JoinHostPort(c.kubectl(t, "get", "pod", "broker", "-o", "jsonpath={.status.podIP}"), "80")
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return c.Dial(ctx, "", network, address)
	}}}
	response, err := client.Get("http://broker/")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, _ := io.ReadAll(response.Body); !bytes.HasPrefix(body, []byte("broker\n")) {
		t.Errorf("got %s", body)
	}
}

func (c oneNode) testListen(t *testing.T) {
	listener, err := c.Listen(t.Context(), "", "tcp", "10.99.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		if conn, err := listener.Accept(); err == nil {
			io.WriteString(conn, "from outside")
			conn.Close()
		}
	}()
	conn, err := c.Dial(t.Context(), "node1", "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got, _ := io.ReadAll(conn); string(got) != "from outside" {
		t.Errorf("got %q", got)
	}
}

func (c oneNode) testExec(t *testing.T) {
	var out bytes.Buffer
	err := c.Exec(t.Context(), cluster.Command{
		Node: "node1", Args: []string{"sh", "-c", "hostname; cat; echo no >&2; exit 3"}, Stdin: strings.NewReader("typed"), Stdout: &out,
	})
	exit, ok := errors.AsType[*cluster.ExitError](err)
	if !ok || exit.Status != 3 || exit.Output != "no" || out.String() != "node1\ntyped" {
		t.Errorf("got %v and output %q", err, out.String())
	}
}

// testExecSameWriter closes standard output before standard error: what one copy of the
// output has written must outlive the end of the other.
func (c oneNode) testExecSameWriter(t *testing.T) {
	var out bytes.Buffer
	err := c.Exec(t.Context(), cluster.Command{
		Args: []string{"sh", "-c", "echo 1; echo 2 >&2; echo 3; exec >&-; sleep 0.2"}, Stdout: &out, Stderr: &out,
	})
	if err != nil || out.String() != "1\n2\n3\n" {
		t.Errorf("got %v and output %q", err, out.String())
	}
}

func (c oneNode) testExecCanceled(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	if err := c.Exec(ctx, cluster.Command{Node: "node1", Args: []string{"sleep", "3141"}}); err == nil {
		t.Error("the command exited by itself")
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	eventually(t, 5*time.Second, "the command is gone", func() bool {
		for _, p := range processes(t) {
			if strings.Contains(p.text, "sleep 3141") && p.state != "Z" {
				return false
			}
		}
		return true
	})
}

func (c oneNode) testDirectories(t *testing.T) {
	if err := os.WriteFile(filepath.Join(c.AkriDir("node1"), "here"), []byte("seen"), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := c.Output(t.Context(), "node1", "cat", "/var/lib/akri/here")
	if err != nil || string(got) != "seen" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := net.Dial("unix", filepath.Join(c.KubeletDir("node1"), "device-plugins", "kubelet.sock")); err != nil {
		t.Errorf("the kubelet's device plugin socket: %v", err)
	}
}

func (c oneNode) testLoad(t *testing.T) {
	bin, err := build.DefaultDir()
	if err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(t.TempDir(), "late.tar")
	err = image.Write(archive, image.Image{
		Name: "akri.local/late:1", Files: map[string]string{"/w": filepath.Join(bin, "workload")}, Entrypoint: []string{"/w"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Load(t.Context(), archive); err != nil {
		t.Fatal(err)
	}
	c.kubectl(t, "run", "late", "--image=akri.local/late:1")
	c.kubectl(t, "wait", "--for=condition=Ready", "pod/late", "--timeout=30s")
	c.kubectl(t, "delete", "pod", "late", "--wait=false")
}

// testRestarts checks that Pods survive a restart of their kubelet, containerd and the
// API server, and are restarted after a power failure.
func (c oneNode) testRestarts(t *testing.T) {
	t.Run("pods survive a restart of the kubelet", func(t *testing.T) {
		c.do(t, cluster.Restart, "node1/kubelet")
		c.awaitRecovery(t, "0")
	})
	t.Run("pods survive a restart of containerd", func(t *testing.T) {
		c.do(t, cluster.Restart, "node1/containerd")
		c.awaitRecovery(t, "0")
	})
	t.Run("a killed API server starts again with its objects", func(t *testing.T) {
		c.do(t, cluster.Kill, "kube-apiserver")
		if out, err := c.Kubectl(t.Context(), "get", "pods", "--request-timeout=2s"); err == nil {
			t.Errorf("the killed API server answers: %s", out)
		}
		c.do(t, cluster.Run, "kube-apiserver")
		c.awaitRecovery(t, "0")
	})
	t.Run("a node that lost power boots again", func(t *testing.T) {
		c.do(t, cluster.Kill, "node1")
		c.do(t, cluster.Run, "node1")
		c.awaitRecovery(t, "1")
	})
}

// assertAudited fails the test unless the audit log has a completed request.
func assertAudited(t *testing.T, file, verb, resource string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(b) {
		var event struct {
			Verb, Stage string
			ObjectRef   struct{ Resource string }
		}
		if err := json.Unmarshal(line, &event); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if event.Verb == verb && event.ObjectRef.Resource == resource && event.Stage == "ResponseComplete" {
			return
		}
	}
	t.Errorf("no %s of %s in %d bytes of audit log", verb, resource, len(b))
}

// supervisorOf returns the process ID of a cluster's supervisor.
func supervisorOf(t *testing.T, dir string) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "cluster.json"))
	if err != nil {
		t.Fatal(err)
	}
	var state struct{ Pid int }
	if err := json.Unmarshal(b, &state); err != nil {
		t.Fatal(err)
	}
	if state.Pid == 0 {
		t.Fatalf("no process ID in %s", strconv.Quote(string(b)))
	}
	return state.Pid
}
