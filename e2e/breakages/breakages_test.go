package breakages

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/e2e/akri"
	"akri.sh/akri/kubebox/cluster"
	"akri.sh/akri/kubebox/clustertest"
)

func TestMain(m *testing.M) { clustertest.Main(m) }

// timeout bounds how long a step waits. No step passes by timing out.
const timeout = 120 * time.Second

// usual is what a script is given that says nothing else.
const usual = `
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: $NAME}
spec:
  discoveryHandler: {name: debugEcho, discoveryDetails: "descriptions: [$NAME]"}
  capacity: 1
  instanceBrokerResources:
  - apiVersion: apps/v1
    kind: Deployment
    metadata: {name: "{{ INSTANCE_NAME }}"}
    spec:
      strategy: {type: Recreate}
      selector: {matchLabels: {app: $NAME}}
      template:
        metadata: {labels: {app: $NAME}}
        spec:
          terminationGracePeriodSeconds: 1
          containers:
          - name: broker
            image: akri.local/workload:1
            resources: {limits: {"akri.sh/{{ INSTANCE_NAME }}": "1"}}
`

// TestBreakages runs the scripts, one after the other: most break what all of them use.
func TestBreakages(t *testing.T) {
	clustertest.Full(t)
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 25 {
		t.Fatalf("there are %d scripts: %v", len(files), err)
	}
	controllers := append(slices.Clone(cluster.FastControllers), "resourcequota-controller")
	c, existing := clustertest.Existing(t, cluster.Config{Nodes: 1, Controllers: controllers})
	programs, err := akri.Build(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	if !existing {
		if err := akri.Install(t.Context(), c, programs); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) {
			steps, err := readScript(file)
			if err != nil {
				t.Fatal(err)
			}
			newRun(t, c, programs, name).script(steps)
		})
	}
}

// run is a run of a script.
type run struct {
	*testing.T
	cluster         *cluster.Cluster
	name, namespace string
	dir             string // the root of the repository
	env             []string
	instance        string
	said            string // by the last command that was asked
}

// newRun returns a run in a new namespace.
func newRun(t *testing.T, c *cluster.Cluster, programs akri.Programs, name string) *run {
	t.Helper()
	r := &run{T: t, cluster: c, name: name, namespace: fmt.Sprintf("break-%s-%d", name, os.Getpid()%1000), dir: programs.Root}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := writeKubeconfig(c.Kubeconfig(), kubeconfig, r.namespace); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(programs.Root, "bin", "k8s")
	r.env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "DIR="+t.TempDir(), "AKRI_DIR="+c.AkriDir("node1"),
		"PATH="+strings.Join([]string{programs.Dir, bin, os.Getenv("PATH")}, ":"))
	r.shell(t.Context(), "kubectl create namespace "+r.namespace)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout) // the test's own context has ended
		defer cancel()
		if t.Failed() {
			t.Log(akri.Evidence(ctx, c, r.namespace))
		}
		r.shell(ctx, "kubectl delete --wait=false namespace "+r.namespace)
	})
	return r
}

// writeKubeconfig copies a kubeconfig, which is JSON, with another namespace.
func writeKubeconfig(from, to, namespace string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var config map[string]any
	if err := json.Unmarshal(data, &config); err != nil {
		return err
	}
	for _, named := range config["contexts"].([]any) {
		named.(map[string]any)["context"].(map[string]any)["namespace"] = namespace
	}
	if data, err = json.Marshal(config); err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o600)
}

// script runs the steps, and then waits until the object is healthy again.
func (r *run) script(steps []step) {
	r.Helper()
	usually := step{heading: "given", lines: strings.Split(usual, "\n")}
	if steps[0].heading != "given" {
		steps = append([]step{usually}, steps...)
	}
	healthy := false
	for _, s := range steps {
		if s.heading == "finally" {
			r.Cleanup(func() {
				ctx, cancel := context.WithTimeout(context.Background(), timeout)
				defer cancel()
				r.shell(ctx, strings.Join(s.lines, "\n"))
			})
		}
	}
	for _, s := range steps {
		healthy = healthy || s.heading == "healthy"
		r.step(s)
	}
	if !healthy {
		r.step(step{heading: "healthy"})
	}
}

// step does what a step says.
func (r *run) step(s step) {
	r.Helper()
	text := strings.Join(s.lines, "\n")
	switch s.heading {
	case "given":
		r.give(text, s.argument)
	case "break", "do":
		r.shell(r.Context(), text)
	case "says":
		r.wait(s.argument, s.lines)
	case "remedy":
		for _, line := range s.lines {
			if command := r.expand(line); !strings.Contains(r.said, command) {
				r.Fatalf("the remedy is not printed: %s\n%s", command, r.said)
			}
		}
		r.shell(r.Context(), text)
	case "healthy":
		if s.argument == "" {
			s.argument, s.lines = "kubectl akri why configuration/$NAME", []string{"$NAME  Ready", "No problem found"}
		}
		r.wait(s.argument, s.lines)
	}
}

// give applies a manifest, and waits until the Configuration is Ready unless it is "not
// ready".
func (r *run) give(manifest, argument string) {
	r.Helper()
	command := "kubectl apply --server-side -f - <<'END'\n" + r.expand(manifest) + "\nEND\n"
	if argument == "not ready" {
		r.shell(r.Context(), command)
		return
	}
	r.shell(r.Context(), command+"kubectl wait --timeout=90s --for=condition=Ready configuration/"+r.name)
	if r.Failed() {
		r.FailNow()
	}
}

// wait repeats a command until it says something.
func (r *run) wait(command string, parts []string) {
	r.Helper()
	want := strings.Split(r.expand(strings.Join(parts, "\n")), "\n")
	took := clustertest.Eventually(r, timeout, command, func() string {
		shell := r.command(r.Context(), command)
		out, _ := shell.CombinedOutput() // a command that fails says something, too
		r.said = string(out)
		if part := missing(r.said, want); part != "" {
			return fmt.Sprintf("want %q in\n%s", part, r.said)
		}
		return ""
	})
	r.Logf("%5.1fs  %s", took.Seconds(), command)
}

// shell runs commands, and fails the test if one of them fails.
func (r *run) shell(ctx context.Context, text string) {
	r.Helper()
	if program, found := strings.CutPrefix(strings.TrimSpace(text), "systemctl "); found {
		action, component, _ := strings.Cut(program, " ")
		if err := r.cluster.Do(ctx, cluster.Action(action), "node1/"+component); err != nil {
			r.Error(err)
		}
		return
	}
	if out, err := r.command(ctx, text).CombinedOutput(); err != nil {
		r.Errorf("%s: %v\n%s", text, err, out)
	}
}

// command returns a shell with the environment of an operator.
func (r *run) command(ctx context.Context, text string) *exec.Cmd {
	command := exec.CommandContext(ctx, "sh", "-ec", r.expand(text))
	command.Dir, command.Env = r.dir, r.env
	return command
}

// expand replaces the variables of scripts. The shell replaces others.
func (r *run) expand(text string) string {
	if r.instance == "" && strings.Contains(text, "$INSTANCE") {
		out, err := r.cluster.Kubectl(r.Context(), "-n", r.namespace, "get", "instances", "--output=jsonpath={.items[0].metadata.name}")
		if err != nil {
			r.Fatal(err)
		}
		r.instance = string(out)
	}
	return strings.NewReplacer("$NAMESPACE", r.namespace, "$NAME", r.name, "$INSTANCE", r.instance).Replace(text)
}
