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
		w.assertClean()
		w.kubectl("delete", "configuration/cls", "--timeout=60s")
	})
	t.Run("kubectl, and back before cleaning up", func(t *testing.T) {
		w, dir := newWorld(t), t.TempDir()
		handlers := w.uid("daemonset/akri-debug-echo-discovery-daemonset")
		w.moveWithout("kubectl akri migrate clean", dir, "--install=kubectl", "--source="+w.programs.Root, "--replace-handlers")
		w.moveBackBeforeCleaning(dir, handlers)
	})
	t.Run("helm, and back", func(t *testing.T) {
		helm, dir := buildHelm(t), t.TempDir() // before the cluster starts: it takes the processors
		w := newWorld(t)
		w.path = []string{helm}
		w.move(dir, "--source="+filepath.Join(w.programs.Root, "charts", "akri"), "--set=image.tag=dev")
		w.assertClean()
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
	w.t.Helper()
	w.moveWithout("", dir, arguments...)
}

// moveWithout does the same without a command, the last of the script, unless it is empty.
func (w *world) moveWithout(last, dir string, arguments ...string) {
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
	began := time.Now()
	w.beginMove(dir, arguments...)
	script := w.run(dir, "", "kubectl", append([]string{"akri", "migrate", "plan"}, arguments...)...)
	script, found := strings.CutSuffix(script, last+"\n")
	if !found {
		t.Fatalf("the script does not end with %s:\n%s", last, script)
	}
	if err := os.WriteFile(filepath.Join(dir, "move.sh"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	out := w.run(dir, "y\n", "sh", "-x", "move.sh")
	t.Logf("the scripts took %s\n%s", time.Since(began).Round(time.Second), out)

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
	w.bringBack("node2")
}

// beginMove runs the script that the plan prints with arguments up to the installation,
// as if it had failed then. The next plan goes on from there.
func (w *world) beginMove(dir string, arguments ...string) {
	w.t.Helper()
	script := w.run(dir, "", "kubectl", append([]string{"akri", "migrate", "plan"}, arguments...)...)
	script, _, found := strings.Cut(script, " Wait for them\n")
	if !found {
		w.t.Fatalf("the script does not wait for what it installs:\n%s", script)
	}
	if err := os.WriteFile(filepath.Join(dir, "begin.sh"), []byte(script), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.t.Log(w.run(dir, "", "sh", "-x", "begin.sh"))
}

// assertClean fails the test if something of Akri is left.
func (w *world) assertClean() {
	t := w.t
	t.Helper()
	for _, object := range []string{"configuration/cls", "instance/cls-8120fe"} {
		if left := w.kubectl("get", object, "-o", "jsonpath={.metadata.finalizers}"); left != "" {
			t.Errorf("%s has the finalizers %s", object, left)
		}
	}
	if left := w.run(t.TempDir(), "", "kubectl", "akri", "migrate", "clean"); !strings.Contains(left, "has left nothing") {
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
	w.assertBack(before)
	w.kubectl("delete", "configuration/cls", "--timeout=60s")
}

// wayBack returns the commands in a block of the section of docs/migrate-from-akri.md, for
// namespace default.
func (w *world) wayBack(block int) string {
	w.t.Helper()
	page, err := os.ReadFile(filepath.Join(w.programs.Root, "docs", "migrate-from-akri.md"))
	if err != nil {
		w.t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## The way back\n")
	section, _, _ = strings.Cut(section, "\n## ")
	blocks := regexp.MustCompile(`(?m)(^    .*\n)+`).FindAllString(section, -1)
	if block >= len(blocks) {
		w.t.Fatalf("the section has %d blocks of commands", len(blocks))
	}
	return strings.ReplaceAll(blocks[block], "NAMESPACE", "default")
}

// moveBackBeforeCleaning goes the way back by the commands of the page, after an
// installation by kubectl. handlers is the UID of the DaemonSet that the script has deleted.
func (w *world) moveBackBeforeCleaning(dir, handlers string) {
	w.t.Helper()
	const (
		takeOut = 1 + iota // after the block with Helm
		deleteInstances
		_ // some nodes still have Akri's agents
		bringBack
	)
	before := w.uid("configuration/cls")
	w.eventually("the finalizers of the former agents are gone", func() bool {
		return w.kubectl("get", "configurations.akri.sh,instances.akri.sh", "-o", "jsonpath={.items[*].metadata.finalizers}") == ""
	})
	w.run(w.programs.Root, "", "sh", "-exc", w.wayBack(takeOut))
	w.run(dir, "", "sh", "-exc", w.wayBack(deleteInstances))
	w.eventually("the Instances and brokers are gone", func() bool {
		return w.kubectl("get", "instances.akri.sh,pods", "-A", "--selector=akri.sh/configuration=cls", "-o", "name") == ""
	})
	var commands []string
	for line := range strings.Lines(w.wayBack(bringBack)) {
		if !strings.Contains(line, "akri-release.yaml") { // Akri was not installed by Helm here
			commands = append(commands, line)
		}
	}
	w.run(dir, "", "sh", "-exc", strings.Join(commands, ""))
	for _, workload := range []string{
		"daemonset/akri-agent-daemonset", "daemonset/akri-debug-echo-discovery-daemonset",
		"deployment/akri-controller-deployment", "deployment/akri-webhook-configuration",
	} {
		w.kubectl("rollout", "status", workload, "--timeout=60s")
	}
	if now := w.uid("daemonset/akri-debug-echo-discovery-daemonset"); now == handlers {
		w.t.Error("the script has not deleted Akri's handlers")
	}
	w.uid("validatingwebhookconfiguration/akri-webhook-configuration")
	w.assertBack(before)
}

// assertBack fails the test unless there are Akri's Configuration with a UID and its roles,
// no Instances, and nothing of ours.
func (w *world) assertBack(configuration string) {
	w.t.Helper()
	if now := w.uid("configuration/cls"); now != configuration {
		w.t.Error("the Configuration was created again")
	}
	if left := w.kubectl("get", "instances.akri.sh", "-A", "-o", "name"); left != "" {
		w.t.Errorf("these are left:\n%s", left)
	}
	w.uid("clusterrole/akri-agent-role")
	w.uid("clusterrolebinding/akri-agent-binding")
	const kinds = "deployments,daemonsets,clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingwebhookconfigurations"
	for object := range strings.FieldsSeq(w.kubectl("get", kinds, "-A", "--selector=app.kubernetes.io/part-of=akri", "-o", "name")) {
		if _, name, _ := strings.Cut(object, "/"); name != "akri-agent-role" && name != "akri-agent-binding" {
			w.t.Errorf("%s is left", object)
		}
	}
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
