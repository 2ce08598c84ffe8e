package cluster_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"akri.sh/akri/kubebox/build"
	"akri.sh/akri/kubebox/cluster"
	"akri.sh/akri/kubebox/cluster/internal/sandbox"
	"akri.sh/akri/kubebox/clustertest"
)

const twoPods = `
apiVersion: v1
kind: Pod
metadata: {name: one, labels: {app: w}}
spec:
  nodeName: node1
  containers: [{name: w, image: "akri.local/workload:1", readinessProbe: {httpGet: {port: 6052}, periodSeconds: 1}}]
---
apiVersion: v1
kind: Pod
metadata: {name: two, labels: {app: w}}
spec:
  nodeName: node2
  containers: [{name: w, image: "akri.local/workload:1", readinessProbe: {httpGet: {port: 6052}, periodSeconds: 1}}]
`

func TestNodesReachEachOthersPods(t *testing.T) {
	c := clustertest.Start(t, cluster.Config{Nodes: 2})
	if _, err := c.KubectlInput(t.Context(), []byte(twoPods), "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Kubectl(t.Context(), "wait", "--for=condition=Ready", "pod", "-l", "app=w", "--timeout=30s"); err != nil {
		t.Fatal(err)
	}
	for node, pod := range map[string]string{"node1": "two", "node2": "one"} {
		ip, err := c.Kubectl(t.Context(), "get", "pod", pod, "-o", "jsonpath={.status.podIP}")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		conn, err := c.Dial(ctx, node, "tcp", string(ip)+":6052")
		cancel()
		if err != nil {
			t.Errorf("from %s to the pod %s: %v", node, pod, err)
			continue
		}
		conn.Close()
	}
	testOwnDirectories(t, c)
	testDrain(t, c)
	if err := c.Do(t.Context(), cluster.Kill, "node2"); err != nil {
		t.Fatal(err)
	}
	assertReachesServer(t, c, "node1")
	if _, err := c.Kubectl(t.Context(), "wait", "--for=condition=Ready=Unknown", "node/node2", "--timeout=60s"); err != nil {
		t.Errorf("a lost node does not become unknown: %v", err)
	}
}

// testOwnDirectories writes to a directory of node1 that neither node2 nor the machine may see.
func testOwnDirectories(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	name := filepath.Join("/opt", filepath.Base(c.Dir()))
	if _, err := c.Output(t.Context(), "node1", "mkdir", name); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Output(t.Context(), "node2", "ls", name); err == nil {
		t.Errorf("node2 sees %s of node1", name)
	}
	if _, err := os.Stat(name); err == nil {
		os.Remove(name)
		t.Errorf("the machine sees %s of node1", name)
	}
}

// testDrain evicts the Pod on node1, which a PodDisruptionBudget permits.
func testDrain(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	if _, err := c.Kubectl(t.Context(), "create", "poddisruptionbudget", "w", "--selector=app=w", "--min-available=1"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Kubectl(t.Context(), "drain", "node1", "--force", "--grace-period=1", "--timeout=60s"); err != nil {
		t.Errorf("a drain with a PodDisruptionBudget does not end: %v", err)
	}
}

// assertReachesServer fails the test unless a node reaches the API server within seconds,
// at the bridge's fixed hardware address.
func assertReachesServer(t *testing.T, c *cluster.Cluster, node string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	conn, err := c.Dial(ctx, node, "tcp", "10.99.0.1:443")
	if err != nil {
		t.Errorf("from %s to the API server: %v", node, err)
		return
	}
	conn.Close()
	neighbours, err := c.Output(ctx, node, "cat", "/proc/net/arp")
	if err != nil || !strings.Contains(string(neighbours), sandbox.BridgeMAC.String()) {
		t.Errorf("%s does not know the bridge as %s: %v\n%s", node, sandbox.BridgeMAC, err, neighbours)
	}
}

// TestControlPlaneRunsWithoutRoot runs a starter as an unprivileged user.
func TestControlPlaneRunsWithoutRoot(t *testing.T) {
	bin, err := build.DefaultDir()
	if err != nil {
		t.Fatal(err)
	}
	if err := build.Check(bin, false); err != nil {
		t.Skip(err)
	}
	dir, credential := runDir(t), &syscall.Credential{Uid: uint32(os.Getuid()), Gid: uint32(os.Getgid())}
	if os.Getuid() == 0 {
		credential = &syscall.Credential{Uid: 65534, Gid: 65534}
		if err := os.Chown(filepath.Dir(dir), 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	try := exec.Command(filepath.Join(bin, "kubectl"), "version", "--client")
	try.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	if out, err := try.CombinedOutput(); err != nil {
		t.Skipf("another user cannot run the executables in %s: %v: %s", bin, err, out)
	}
	var output bytes.Buffer
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), starterVariable+"="+dir, starterNodes+"=0", build.DirVariable+"="+bin)
	cmd.Dir = "/"
	cmd.Stderr = &output
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	eventually(t, time.Minute, "the control plane is up", func() bool {
		select {
		case err := <-exited:
			t.Fatalf("the starter exited: %v: %s", err, output.String())
		default:
		}
		return exists(dir + ".up")
	})
	c, err := cluster.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Kubectl(t.Context(), "get", "namespace", "default", "-o", "name")
	if err != nil || strings.TrimSpace(string(got)) != "namespace/default" {
		t.Errorf("got %s, %v", got, err)
	}
	procs := descendants(t, supervisorOf(t, dir))
	cmd.Process.Kill()
	eventually(t, 15*time.Second, "the run directory is gone", func() bool { return !exists(dir) })
	eventually(t, 5*time.Second, "its processes are gone", func() bool {
		for _, p := range processes(t) {
			for _, old := range procs {
				if p.pid == old.pid && p.text == old.text && p.state != "Z" {
					return false
				}
			}
		}
		return true
	})
}

// TestNodesNeedRoot runs a starter as an unprivileged user.
func TestNodesNeedRoot(t *testing.T) {
	var output bytes.Buffer
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), starterVariable+"=/tmp/none")
	cmd.Dir = "/"
	cmd.Stderr = &output
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	err := cmd.Run()
	if want := "this machine cannot run nodes, only a control plane: nodes need root\n"; err == nil || output.String() != want {
		t.Errorf("%v\n got %s\nwant %s", err, output.String(), want)
	}
}
