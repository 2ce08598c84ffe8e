package offline_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"akri.sh/akri/cmd/kubectl-akri/cli"
)

// TestConvertKeepsObjects checks that a converted Configuration creates the same
// objects as before.
func TestConvertKeepsObjects(t *testing.T) {
	for name, broker := range map[string]string{
		"pod": `
  brokerSpec:
    brokerPodSpec:
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms: [{matchExpressions: [{key: gpu, operator: Exists}]}]
      containers:
      - name: broker
        args: ["{{PLACEHOLDER}}", "100%", 'a "quoted" text', "multi\nline"]
        resources: {limits: {"{{PLACEHOLDER}}": "1", cpu: 0.5}, requests: {"{{PLACEHOLDER}}": "1"}}`,
		"job": `
  brokerSpec:
    brokerJobSpec:
      parallelism: 2
      template: {spec: {restartPolicy: Never, containers: [{name: broker, image: x}]}}`,
		"only services": "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			write(t, "old.yaml", `apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: cam, namespace: edge, generation: 4}
spec:
  discoveryHandler: {name: onvif}
  capacity: 2
  instanceServiceSpec: {ports: [{port: 80}], selector: {mine: "yes"}}
  configurationServiceSpec: {ports: [{port: 80}], externalName: "{{x}}"}`+broker+"\n")
			write(
				t,
				"instances.yaml",
				`{apiVersion: akri.sh/v0, kind: Instance, metadata: {name: cam-1}, spec: {shared: true, nodes: [c.example, a, b]}}
---
{apiVersion: akri.sh/v0, kind: Instance, metadata: {name: cam-2}, spec: {nodes: [a]}}
`,
			)
			write(t, "new.yaml", output(t, "convert", "-f", "old.yaml"))
			before := withoutComments(output(t, "render", "-f", "old.yaml", "-i", "instances.yaml"))
			after := withoutComments(output(t, "render", "-f", "new.yaml", "-i", "instances.yaml"))
			if before == "" || before != after {
				t.Errorf("before\n%s\nafter\n%s", before, after)
			}
			if again := output(t, "convert", "-f", "new.yaml"); again != read(t, "new.yaml") {
				t.Errorf("converting the result again changes it:\n%s", again)
			}
			output(t, "lint", "new.yaml")
		})
	}
}

// TestConvertFormer checks that Configurations of Akri before 0.4 are valid after their
// conversion, with details that today's handlers accept.
func TestConvertFormer(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/convert-former.txtar")
	if err != nil {
		t.Fatal(err)
	}
	input := map[string]string{"aliases.yaml": `
apiVersion: akri.sh/v0
kind: Configuration
metadata:
  name: aliases
  annotations: {interface: &method "opc.tcp://192.0.2.51:4840/"}
spec:
  protocol: {opcua: {opcuaDiscoveryMethod: {standard: {discoveryUrls: [*method]}}}}
`}
	for _, f := range archive.Files {
		input[f.Name] = string(f.Data)
	}
	t.Chdir(t.TempDir())
	for _, name := range []string{"onvif.yaml", "udev.yaml", "opcua.yaml", "debug-echo.yaml", "aliases.yaml"} {
		t.Run(name, func(t *testing.T) {
			write(t, name, input[name])
			if err := run(cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}, []string{"lint", name}); err == nil {
				t.Error("the old form is valid")
			}
			converted := output(t, "convert", "-f", name)
			write(t, "new.yaml", converted)
			output(t, "lint", "new.yaml")
			if again := output(t, "convert", "-f", "new.yaml"); again != converted {
				t.Errorf("converting the result again changes it:\n%s", again)
			}
		})
	}
}

// output runs a command that must succeed, and returns its stdout.
func output(t *testing.T, args ...string) string {
	t.Helper()
	var out, errOut bytes.Buffer
	if err := run(cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errOut}, args); err != nil {
		t.Fatalf("%v: %v\n%s%s", args, err, out.String(), errOut.String())
	}
	return out.String()
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.FromSlash(name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func withoutComments(text string) string {
	var kept []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}
