package templating_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"akri.sh/akri/templating"
)

// TestPathIn checks the ways in which the API server writes paths.
func TestPathIn(t *testing.T) {
	var content map[string]any
	if err := yaml.Unmarshal([]byte(`
metadata: {labels: {app.kubernetes.io/name: x}}
data: {"a.b": v, "x[0]": w}
spec:
  ports: [{port: 80, protocol: TCP}, {port: 80, protocol: UDP, name: second}]
  args: [one, two]
  template: {spec: {containers: [{name: a}, {name: 'b]', env: [{name: V, value: 1}]}]}}
`), &content); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"spec.ports[1].name":                                      "spec.ports[1].name",
		".spec.ports[1].name":                                     "spec.ports[1].name",
		`.spec.ports[port=80,protocol="UDP"].name`:                "spec.ports[1].name",
		`.spec.ports[port=80,protocol="TCP"]`:                     "spec.ports[0]",
		`.spec.template.spec.containers[name="a"].image`:          "spec.template.spec.containers[0].image",
		"metadata.labels[app.kubernetes.io/name]":                 `metadata.labels["app.kubernetes.io/name"]`,
		"metadata.labels.app.kubernetes.io/name":                  `metadata.labels["app.kubernetes.io/name"]`,
		"data[a.b]":                                               `data["a.b"]`,
		"data[x[0]]":                                              `data["x[0]"]`,
		`.spec.template.spec.containers[name="b]"].env[name="V"]`: "spec.template.spec.containers[1].env[0]",
		"spec.ports[]":                                            "spec.ports",
		"spec.ports.x":                                            "spec.ports.x",
		"status":                                                  "status",
		"spec.args[=\"two\"]":                                     "spec.args[1]",
		"spec.args[7]":                                            "spec.args",
		"":                                                        "",
		"<nil>":                                                   "",
		"spec.ports[":                                             "spec.ports",
		"[[[":                                                     "",
		"spec..ports":                                             "spec",
		strings.Repeat("spec.", 2000):                             "spec.spec",
	} {
		if got := templating.PathIn(content, text).String(); got != want {
			t.Errorf("%.80s is %s, want %s", text, got, want)
		}
	}
	if value, found := templating.PathIn(content, "spec.ports[1].name").In(content); !found || value != "second" {
		t.Errorf("the value is %v", value)
	}
}
