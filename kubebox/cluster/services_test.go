package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/kubebox/build"
	"akri.sh/akri/kubebox/cluster"
	"akri.sh/akri/kubebox/clustertest"
)

// threePods are two servers, one on each node, and a client in the network of its node.
const threePods = `
apiVersion: v1
kind: Pod
metadata: {name: one, labels: {app: w}}
spec:
  nodeName: node1
  hostname: one
  subdomain: pods
  containers: [{name: w, image: "akri.local/workload:1", readinessProbe: {httpGet: {port: 6052}, periodSeconds: 1}}]
---
apiVersion: v1
kind: Pod
metadata: {name: two, labels: {app: w}}
spec:
  nodeName: node2
  hostname: two
  subdomain: pods
  containers: [{name: w, image: "akri.local/workload:1", readinessProbe: {httpGet: {port: 6052}, periodSeconds: 1}}]
---
apiVersion: v1
kind: Pod
metadata: {name: host}
spec:
  nodeName: node2
  hostNetwork: true
  dnsPolicy: ClusterFirstWithHostNet
  containers: [{name: w, image: "akri.local/workload:1", args: ["6060"]}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: w}, ports: [{port: 80, targetPort: 6052}]}
---
apiVersion: v1
kind: Service
metadata: {name: pods}
spec: {selector: {app: w}, clusterIP: None, ports: [{port: 6052}]}
---
apiVersion: v1
kind: Service
metadata: {name: outside}
spec: {selector: {app: w}, type: NodePort, ports: [{port: 80, targetPort: 6052, nodePort: 30080}]}
`

// services is a cluster with the Pods and Services above.
type services struct{ *cluster.Cluster }

// startServices starts a cluster with two nodes, and waits until the Pods are ready.
func startServices(t *testing.T) services {
	t.Helper()
	s := services{clustertest.Start(t, cluster.Config{Nodes: 2})}
	clustertest.NeedServices(t, s.Cluster)
	s.apply(t, threePods)
	s.kubectl(t, "wait", "--for=condition=Ready", "pods", "--all", "--timeout=60s")
	for _, node := range s.Nodes() {
		s.awaitAnswers(t, node, "web", "80", "one", "two")
	}
	return s
}

func (s services) apply(t *testing.T, manifest string) {
	t.Helper()
	if _, err := s.KubectlInput(t.Context(), []byte(manifest), "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
}

func (s services) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := s.Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// do performs an action on a component and waits until the cluster is ready, unless the
// action stops the component.
func (s services) do(t *testing.T, action cluster.Action, component string) {
	t.Helper()
	if err := s.Do(t.Context(), action, component); err != nil {
		t.Fatal(err)
	}
	if action == cluster.Kill || action == cluster.Stop {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
}

// client runs the workload's client in a Pod and returns its output.
func (s services) client(t *testing.T, pod string, args ...string) (string, error) {
	t.Helper()
	out, err := s.Kubectl(t.Context(), append([]string{"exec", pod, "--", "/workload"}, args...)...)
	return string(out), err
}

// assertLookup fails the test unless lookups in a Pod have these results: each is a
// host's name followed by its addresses.
func (s services) assertLookup(t *testing.T, pod string, want ...string) {
	t.Helper()
	args, lines := []string{"lookup"}, ""
	for _, result := range want {
		fields := strings.Fields(result)
		args = append(args, fields[0])
		slices.Sort(fields[1:])
		lines += strings.Join(fields, " ") + "\n"
	}
	got, err := s.client(t, pod, args...)
	if err != nil || got != lines {
		t.Errorf("in the pod %s:\n%swant:\n%s%v", pod, got, lines, err)
	}
}

// assertAnswers fails the test unless all requests to a URL from a Pod succeed, and these
// hosts, and no others, answer them.
func (s services) assertAnswers(t *testing.T, pod, url string, want ...string) {
	t.Helper()
	// One of two hosts answers none of 40 requests once in 2^39 times.
	out, err := s.client(t, pod, "get", "40", url)
	got := strings.Fields(out)
	slices.Sort(got)
	if err != nil || !slices.Equal(slices.Compact(got), want) {
		t.Errorf("from the pod %s, %s is answered by %q, want %q: %v", pod, url, got, want, err)
	}
}

// awaitAnswers waits until exactly these hosts answer requests from a node at a Service's
// address.
func (s services) awaitAnswers(t *testing.T, node, service, port string, want ...string) {
	t.Helper()
	address := net.JoinHostPort(s.kubectl(t, "get", "service", service, "--output=jsonpath={.spec.clusterIP}"), port)
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		var hosts []string
		var err error
		for range 40 {
			var host string
			if host, err = s.answer(t, node, address); err != nil {
				break
			}
			hosts = append(hosts, host)
		}
		slices.Sort(hosts)
		if hosts = slices.Compact(hosts); err == nil && slices.Equal(hosts, want) {
			return
		}
		if time.Since(began) > 30*time.Second {
			t.Fatalf("from %s, %s is answered by %q, want %q: %v", node, service, hosts, want, err)
		}
	}
}

// answer returns the host that answers a request from a node.
func (s services) answer(t *testing.T, node, address string) (string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	conn, err := s.Dial(ctx, node, "tcp", address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", err
	}
	if _, err := conn.Write([]byte("GET / HTTP/1.0\r\n\r\n")); err != nil {
		return "", err
	}
	var response bytes.Buffer
	if _, err := response.ReadFrom(conn); err != nil {
		return "", err
	}
	_, body, _ := strings.Cut(response.String(), "\r\n\r\n")
	host, _, _ := strings.Cut(body, "\n")
	return host, nil
}

// TestServices tests routing and names in a single cluster, because starting one takes
// seconds.
func TestServices(t *testing.T) {
	clustertest.Full(t)
	before := snapshotMachine(t)
	s := startServices(t)
	t.Run("a Service spreads requests over pods on both nodes", func(t *testing.T) {
		for _, pod := range []string{"one", "two", "host"} {
			s.assertAnswers(t, pod, "http://web/", "one", "two")
			s.assertAnswers(t, pod, "http://web.default.svc.cluster.local:80/", "one", "two")
		}
	})
	t.Run("names resolve", s.testNames)
	t.Run("the API server is reached by its name", func(t *testing.T) {
		for _, pod := range []string{"one", "host"} {
			if got, err := s.client(t, pod, "get", "1", "https://kubernetes.default.svc/livez"); err != nil || got != "ok\n" {
				t.Errorf("got %q, %v", got, err)
			}
		}
	})
	t.Run("a NodePort is open on every node", func(t *testing.T) {
		for _, address := range []string{"10.99.0.11:30080", "10.99.0.12:30080"} {
			if host, err := s.answer(t, "", address); err != nil || host != "one" && host != "two" {
				t.Errorf("%s: %q, %v", address, host, err)
			}
		}
	})
	t.Run("a Service without endpoints refuses connections", func(t *testing.T) {
		s.apply(t, `{apiVersion: v1, kind: Service, metadata: {name: empty}, spec: {selector: {app: none}, ports: [{port: 80}]}}`)
		eventually(t, 30*time.Second, "connections are refused", func() bool {
			_, err := s.client(t, "one", "get", "1", "http://empty/")
			return err != nil && strings.Contains(err.Error(), "connection refused")
		})
	})
	t.Run("components can be restarted", s.testRestarts)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	before.assertSame(t)
}

func (s services) testNames(t *testing.T) {
	ip := func(kind, name, path string) string {
		return s.kubectl(t, "get", kind, name, "--output=jsonpath={"+path+"}")
	}
	web, one, two := ip("service", "web", ".spec.clusterIP"), ip("pod", "one", ".status.podIP"), ip("pod", "two", ".status.podIP")
	for _, pod := range []string{"one", "host"} {
		s.assertLookup(t, pod,
			"kubernetes 10.96.0.1",
			"kube-dns.kube-system 10.96.0.10",
			"web "+web,
			"web.default.svc.cluster.local. "+web,
			"pods "+one+" "+two,
			"two.pods "+two,
			strings.ReplaceAll(one, ".", "-")+".default.pod.cluster.local "+one,
			"missing", "missing.pods", "example.com", "1.2.0.192.in-addr.arpa",
		)
	}
}

// testRestarts checks that Services work after their components were restarted. It ends
// with a node that lost power, and leaves the Pod on the other node.
func (s services) testRestarts(t *testing.T) {
	t.Run("routes outlive kube-proxy, which catches up", func(t *testing.T) {
		s.do(t, cluster.Kill, "node1/kube-proxy")
		s.assertAnswers(t, "one", "http://web/", "one", "two")
		s.apply(t, `{apiVersion: v1, kind: Service, metadata: {name: late}, spec: {selector: {app: w}, ports: [{port: 80, targetPort: 6052}]}}`)
		s.awaitAnswers(t, "node2", "late", "80", "one", "two")
		if _, err := s.client(t, "one", "get", "1", "http://late/"); err == nil {
			t.Error("a new Service is reachable although kube-proxy has been killed")
		}
		s.do(t, cluster.Run, "node1/kube-proxy")
		s.awaitAnswers(t, "node1", "late", "80", "one", "two")
		s.do(t, cluster.Restart, "node1/kube-proxy")
		s.assertAnswers(t, "one", "http://late/", "one", "two")
	})
	t.Run("names resolve again after a restart of the DNS server", func(t *testing.T) {
		s.do(t, cluster.Kill, "coredns")
		if got, err := s.client(t, "one", "lookup", "web"); err == nil {
			t.Errorf("the killed DNS server answers: %q", got)
		}
		s.do(t, cluster.Run, "coredns")
		s.assertAnswers(t, "one", "http://web/", "one", "two")
	})
	t.Run("a restart of the API server does not interrupt Services", func(t *testing.T) {
		s.do(t, cluster.Kill, "kube-apiserver")
		s.awaitNodeAnswer(t, "node1")
		s.do(t, cluster.Run, "kube-apiserver")
		s.assertAnswers(t, "one", "http://web/", "one", "two")
	})
	t.Run("a pod that is deleted gets no requests", func(t *testing.T) {
		s.kubectl(t, "delete", "pod", "two", "--wait=true")
		s.awaitAnswers(t, "node1", "web", "80", "one")
		s.assertAnswers(t, "host", "http://web/", "one")
		s.assertLookup(t, "one", "pods "+s.kubectl(t, "get", "pod", "one", "--output=jsonpath={.status.podIP}"))
	})
	t.Run("a node that lost power routes Services after it has booted", func(t *testing.T) {
		s.do(t, cluster.Kill, "node2")
		s.do(t, cluster.Run, "node2")
		s.awaitAnswers(t, "node2", "web", "80", "one")
	})
	components, err := s.Components(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	running := map[string]bool{}
	for _, c := range components {
		running[c.Name] = c.State == "running"
	}
	for _, name := range []string{"coredns", "node1/kube-proxy", "node2/kube-proxy"} {
		if !running[name] {
			t.Errorf("%s is not running: %+v", name, components)
		}
	}
}

// awaitNodeAnswer waits for an answer from the Service web without the API server, which
// would be needed to look up its address.
func (s services) awaitNodeAnswer(t *testing.T, node string) {
	t.Helper()
	rules, err := s.Output(t.Context(), node, "nft", "list", "map", "ip", "kube-proxy", "service-ips")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(rules)) {
		if fields := strings.Fields(line); strings.Contains(line, "default/web/tcp") {
			address := strings.TrimPrefix(strings.Join(fields[max(0, slices.Index(fields, ".")-1):], " "), "elements = { ")
			host, _, _ := strings.Cut(address, " ")
			if _, err := s.answer(t, node, net.JoinHostPort(host, "80")); err != nil {
				t.Errorf("while the API server is down: %v", err)
			}
			return
		}
	}
	t.Errorf("no rule for the Service in\n%s", rules)
}

// TestClusterWithoutNFT checks that a machine without nft runs clusters that resolve
// names, and says what to install.
func TestClusterWithoutNFT(t *testing.T) {
	requireNodes(t)
	bin, err := build.DefaultDir()
	if err != nil {
		t.Fatal(err)
	}
	without, err := os.MkdirTemp("/tmp", "bin-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(without) })
	for _, dir := range append([]string{bin}, filepath.SplitList(os.Getenv("PATH"))...) {
		entries, _ := os.ReadDir(dir) // a missing directory has no programs
		for _, e := range entries {
			if e.Name() == "nft" {
				continue
			}
			err := os.Symlink(filepath.Join(dir, e.Name()), filepath.Join(without, e.Name()))
			if err != nil && !errors.Is(err, fs.ErrExist) { // the first directory wins, as in PATH
				t.Fatal(err)
			}
		}
	}
	t.Setenv("PATH", without)
	var progress strings.Builder
	c := clustertest.Start(t, cluster.Config{Nodes: 1, Bin: without, Progress: func(text string) { fmt.Fprintln(&progress, text) }})
	s := services{c}
	if s.RoutesServices() || !strings.Contains(progress.String(), "install nftables") || strings.Contains(progress.String(), "are routed") {
		t.Errorf("routes Services: %v; the progress is\n%s", s.RoutesServices(), progress.String())
	}
	s.apply(t, pod+`---
{apiVersion: v1, kind: Service, metadata: {name: pods}, spec: {selector: {app: w}, clusterIP: None, ports: [{port: 6052}]}}
`)
	s.kubectl(t, "label", "pod", "broker", "app=w")
	s.kubectl(t, "wait", "--for=condition=Ready", "pod/broker", "--timeout=60s")
	s.assertLookup(t, "broker", "kubernetes 10.96.0.1")
	eventually(t, 30*time.Second, "the pod is reached by the name of a headless Service", func() bool {
		got, err := s.client(t, "broker", "get", "1", "http://pods:6052/")
		return err == nil && got == "broker\n"
	})
}
