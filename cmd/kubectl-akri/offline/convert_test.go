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

// TestConvertKeepsText checks that everything but the converted fields stays as it is.
func TestConvertKeepsText(t *testing.T) {
	t.Chdir(t.TempDir())
	const (
		odd = "# 100% of \t tabs   \n\n" +
			"  discoveryHandler:   # ü, 😀, \u00a0\n    'name':   \"udev\"\n    discoveryDetails: >-\n      folded   text\n\n      'udevRules'\n" +
			"\n\n  # of capacity\n  capacity: 0x2   # hexadecimal\n" +
			"  brokerProperties: {A:   'b', \"C\": \"%s\\u00e9\",\n    D: 'e \u0085\u2028 f'}\n"
		broker = "  brokerSpec:\n    brokerPodSpec:\n      containers:\n        - name: a\n\n        - name: b\n          command: [\"%d\", |-\n"
	)
	head := "\ufeffapiVersion: akri.sh/v0\nkind: Configuration\nmetadata:\n    name: a\n    labels: {b: c}\nspec:\n"
	const rack = "kind: Rack\nitems: [ a ]\n---\n"
	const list = "  instanceBrokerResources:\n    - {apiVersion: v1, kind:   ConfigMap, metadata: {name: c}}\n    # c\n"
	pod := strings.Replace(broker, "[\"%d\", |-\n", "[\"%d\"]\n", 1)
	tail := "---\n# another\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n  a: |\n    b   \n\n...\n"
	for name, tc := range map[string]struct{ in, before, after string }{
		"at the end":        {head + odd + pod + tail, head + odd + "  instanceBrokerResources:\n", tail},
		"first":             {head + pod + odd + tail, head + "  instanceBrokerResources:\n", odd + tail},
		"at the top level":  {head + odd + strings.Replace(pod, "brokerSpec:\n    brokerPodSpec", "brokerPodSpec", 1), head + odd, ""},
		"nothing":           {head + odd + tail, head + odd + tail, ""},
		"without a newline": {head + odd + strings.TrimSuffix(pod, "\n"), head + odd + "  instanceBrokerResources:\n", ""},
		"of older versions": {head + "  properties: {A:   b}  # c\n  units: x\n" + tail, head + "  brokerProperties: {A:   b}  # c\n" + tail, ""},
		"from the cluster": {
			strings.Replace(head, "    name", "    uid: x\n    finalizers:\n    - node\n    name", 1) + odd + "status:\n  a: b\n" + tail,
			head + odd + tail, "",
		},
		"an existing list": {head + list + "\n" + pod + odd, head + list + "    - apiVersion", "\n\n" + odd},
		"other kinds":      {rack + head[3:] + odd + tail, rack + head[3:] + odd + tail, ""},
		"after another":    {tail + "---\n" + head[3:] + pod, tail + "---\n" + head[3:] + "  instanceBrokerResources:\n", ""},
		"a flow": {
			"{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: a, uid: x}, spec: {capacity: 1}} # x\n",
			"apiVersion: akri.sh/v0\n", "spec: {capacity: 1}\n",
		},
	} {
		for _, end := range []string{"\n", "\r\n"} {
			write(t, "in.yaml", strings.ReplaceAll(tc.in, "\n", end))
			got := output(t, "convert", "-f", "in.yaml")
			if end != "\n" && name != "a flow" && strings.Count(got, "\n") != strings.Count(got, end) {
				t.Errorf("%s: the result mixes line ends: %q", name, got)
			}
			if got = strings.ReplaceAll(got, end, "\n"); !strings.HasPrefix(got, tc.before) || !strings.HasSuffix(got, tc.after) {
				t.Errorf("%s: got\n%s, want\n%s, and in the end\n%s", name, got, tc.before, tc.after)
			}
			write(t, "again.yaml", got)
			if again := output(t, "convert", "-f", "again.yaml"); again != got {
				t.Errorf("%s: converting the result again changes it:\n%s", name, again)
			}
		}
	}
}
