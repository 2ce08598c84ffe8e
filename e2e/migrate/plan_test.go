package migrate

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/e2e/akri"
	"akri.sh/akri/kubebox/build"
	"akri.sh/akri/kubebox/cluster"
	"akri.sh/akri/kubebox/clustertest"
)

func TestMain(m *testing.M) { clustertest.Main(m) }

// timeout bounds how long a test waits for a condition.
const timeout = 60 * time.Second

// world is a cluster with the original Akri.
type world struct {
	*cluster.Cluster
	t        *testing.T
	programs akri.Programs
	path     []string // directories of further programs
}

// kubectl runs kubectl in namespace default and returns its output.
func (w *world) kubectl(arguments ...string) string {
	w.t.Helper()
	out, err := w.Kubectl(w.t.Context(), arguments...)
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

var manager = regexp.MustCompile(`(?m)^# manager: (\S+)$`)

// applyAs applies the documents of a file as the field managers that comments name.
func (w *world) applyAs(file string) {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		w.t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(data), "\n---\n") {
		for placeholder, object := range map[string]string{"CONFIGURATION": "configuration/cls", "INSTANCE": "instance/cls-8120fe"} {
			if strings.Contains(document, "uid: "+placeholder) {
				document = strings.ReplaceAll(document, "uid: "+placeholder, "uid: "+w.uid(object))
			}
		}
		as := "helm"
		if match := manager.FindStringSubmatch(document); match != nil {
			as = match[1]
		}
		_, err := w.KubectlInput(w.t.Context(), []byte(document), "apply", "--server-side", "--field-manager="+as, "-f", "-")
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) uid(object string) string {
	w.t.Helper()
	return w.kubectl("get", object, "-o", "jsonpath={.metadata.uid}")
}

// run runs a program with the cluster's kubeconfig and this checkout's plugin on the PATH.
func (w *world) run(dir, stdin, program string, arguments ...string) string {
	w.t.Helper()
	command := exec.CommandContext(w.t.Context(), "env", append([]string{program}, arguments...)...) // finds it on its own PATH
	command.Dir = dir
	kubernetes, err := build.DefaultDir()
	if err != nil {
		w.t.Fatal(err)
	}
	path := strings.Join(append(w.path, w.programs.Dir, kubernetes, os.Getenv("PATH")), ":")
	command.Env = append(os.Environ(), "KUBECONFIG="+w.Kubeconfig(), "PATH="+path)
	command.Stdin = strings.NewReader(stdin)
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	if err := command.Run(); err != nil {
		w.t.Fatalf("%s %s: %v\n%s", program, strings.Join(arguments, " "), err, out.String())
	}
	return out.String()
}

// TestPlan moves a cluster by the script that the plan prints: no object is created
// again, no broker restarts, and nothing of Akri is left. A node that is down does not hold
// it up, and moves when it is back.
func TestPlan(t *testing.T) {
	clustertest.Full(t)
	t.Run("kubectl", func(t *testing.T) {
		w := newWorld(t)
		w.move(t.TempDir(), "--install=kubectl", "--source="+w.programs.Root)
		w.kubectl("delete", "configuration/cls", "--timeout=60s")
	})
	t.Run("helm, and back", func(t *testing.T) {
		helm, dir := buildHelm(t), t.TempDir() // before the cluster starts: it takes the processors
		w := newWorld(t)
		w.path = []string{helm}
		w.move(dir, "--source="+filepath.Join(w.programs.Root, "charts", "akri"), "--set=image.tag=dev")
		w.moveBack(dir)
	})
}

// newWorld starts a cluster with objects of the original Akri.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Cluster: clustertest.Start(t, cluster.Config{Nodes: 2}), t: t}
	var err error
	if w.programs, err = akri.Build(t.Context(), os.Stderr); err != nil {
		t.Fatal(err)
	}
	if err := w.Load(t.Context(), w.programs.Images...); err != nil {
		t.Fatal(err)
	}
	definitions := filepath.Join(w.programs.Root, "cmd", "kubectl-akri", "testdata", "migrate", "definitions")
	w.kubectl("create", "--field-manager=helm", "-f", definitions)
	w.kubectl("wait", "--for=condition=Established", "crd/configurations.akri.sh", "crd/instances.akri.sh")
	w.applyAs("akri.yaml")
	w.applyAs("objects.yaml")
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(akri.Evidence(context.WithoutCancel(t.Context()), w.Cluster, "default"))
		}
	})
	w.kubectl("rollout", "status", "daemonset/akri-agent-daemonset", "--timeout=60s")
	w.kubectl("wait", "pod/node1-cls-8120fe-pod", "--for=condition=Ready", "--timeout=60s")
	return w
}

// buildHelm builds the helm that go.mod names, and returns its directory.
func buildHelm(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	command := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", dir+"/", "helm.sh/helm/v4/cmd/helm")
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("build helm: %v\n%s", err, out)
	}
	return dir
}

// move runs the script that the plan prints with arguments, while a node is down.
func (w *world) move(dir string, arguments ...string) {
	t := w.t
	t.Helper()
	if err := w.Do(t.Context(), cluster.Stop, "node2/kubelet"); err != nil {
		t.Fatal(err)
	}
	w.kubectl("wait", "node/node2", "--for=condition=Ready=Unknown", "--timeout=90s")

	objects := []string{"configuration/cls", "instance/cls-8120fe", "pod/node1-cls-8120fe-pod", "service/cls-8120fe-svc"}
	before := map[string]string{}
	for _, object := range objects {
		before[object] = w.uid(object)
	}
	script := w.run(dir, "", "kubectl", append([]string{"akri", "migrate", "plan"}, arguments...)...)
	if err := os.WriteFile(filepath.Join(dir, "move.sh"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	out := w.run(dir, "y\n", "sh", "-x", "move.sh")
	t.Logf("the script took %s\n%s", time.Since(began).Round(time.Second), out)

	w.eventually("the Configuration is Ready", func() bool {
		return w.kubectl("get", "configuration/cls", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`) == "True"
	})
	for _, object := range objects {
		if now := w.uid(object); now != before[object] {
			t.Errorf("%s was created again", object)
		}
	}
	restarts := w.kubectl("get", "pod/node1-cls-8120fe-pod", "-o", "jsonpath={.status.containerStatuses[0].restartCount}")
	if restarts != "0" {
		t.Errorf("the broker restarted %s times", restarts)
	}
	for _, object := range objects[:2] {
		if left := w.kubectl("get", object, "-o", "jsonpath={.metadata.finalizers}"); left != "" {
			t.Errorf("%s has the finalizers %s", object, left)
		}
	}
	w.bringBack("node2")
	if left := w.run(dir, "", "kubectl", "akri", "migrate", "clean"); !strings.Contains(left, "has left nothing") {
		t.Errorf("something is left:\n%s", left)
	}
	if left := w.kubectl("get", "deployments,daemonsets,serviceaccounts", "-o", "name"); strings.Contains(left, "akri-agent") {
		t.Errorf("these are left:\n%s", left)
	}
}

// moveBack goes the way back of docs/migrate-from-akri.md, after an installation by Helm
// and cleaning up. dir has the files that the script has saved.
func (w *world) moveBack(dir string) {
	w.t.Helper()
	before := w.uid("configuration/cls")
	w.kubectl("annotate", "configurations.akri.sh", "-A", "--all", "helm.sh/resource-policy=keep", "--overwrite")
	w.run(dir, "", "helm", "uninstall", "akri", "-n", "akri-system")
	w.kubectl("delete", "instances.akri.sh", "-A", "--all", "--wait=false")
	w.eventually("the Instances and brokers are gone", func() bool {
		return w.kubectl("get", "instances.akri.sh,pods", "-A", "--selector=akri.sh/configuration=cls", "-o", "name") == ""
	})
	w.run(dir, "", "sh", "-ec", "sed '/^ *resourceVersion:/d' akri-definitions.yaml | kubectl replace -f -")
	w.applyAs("akri.yaml")
	w.kubectl("rollout", "status", "daemonset/akri-agent-daemonset", "--timeout=60s")
	if now := w.uid("configuration/cls"); now != before {
		w.t.Error("the Configuration was created again")
	}
	if left := w.kubectl("get", "instances.akri.sh", "-A", "-o", "name"); left != "" {
		w.t.Errorf("these are left:\n%s", left)
	}
	ours := w.kubectl("get", "deployments,daemonsets,clusterroles,validatingadmissionpolicies,validatingwebhookconfigurations", "-A",
		"--selector=app.kubernetes.io/part-of=akri", "-o", "name")
	if ours != "" {
		w.t.Errorf("these are left:\n%s", ours)
	}
	w.kubectl("delete", "configuration/cls", "--timeout=60s")
}

// bringBack starts the kubelet of a node that was down, and waits until the new agent has
// replaced the original there.
func (w *world) bringBack(node string) {
	w.t.Helper()
	if err := w.Do(w.t.Context(), cluster.Run, node+"/kubelet"); err != nil {
		w.t.Fatal(err)
	}
	w.kubectl("wait", "node/"+node, "--for=condition=Ready", "--timeout=60s")
	w.kubectl("rollout", "status", "--namespace=akri-system", "daemonset/akri-agent", "--timeout=60s")
	w.eventually("the original agent has ended on the node that was down", func() bool {
		return w.kubectl("get", "pods", "--selector=app.kubernetes.io/name=akri-agent", "--output=name") == ""
	})
}

// eventually waits until a condition holds.
func (w *world) eventually(what string, holds func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(timeout); !holds(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("%s: not after %s", what, timeout)
		}
	}
}
