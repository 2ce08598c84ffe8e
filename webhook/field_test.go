package webhook

import (
	"strings"
	"testing"
)

func TestLocate(t *testing.T) {
	content := decode(t, `
metadata: {labels: {app.kubernetes.io/name: x}}
data: {"a.b": v, "x[0]": w}
spec:
  ports: [{port: 80, protocol: TCP}, {port: 80, protocol: UDP, name: second}]
  args: [one, two]
  template: {spec: {containers: [{name: a}, {name: 'b"]', env: [{name: N, value: 1}]}]}}
`).Object
	for text, want := range map[string]string{
		"spec.ports[1].name":                             "spec.ports[1].name",
		".spec.ports[1].name":                            "spec.ports[1].name",
		`.spec.ports[port=80,protocol="UDP"].name`:       "spec.ports[1].name",
		`.spec.ports[port=80,protocol="TCP"]`:            "spec.ports[0]",
		`.spec.template.spec.containers[name="a"].image`: "spec.template.spec.containers[0].image",
		"metadata.labels[app.kubernetes.io/name]":        "metadata.labels[app.kubernetes.io/name]",
		"metadata.labels.app.kubernetes.io/name":         "metadata.labels[app.kubernetes.io/name]",
		"data[a.b]":                                      "data[a.b]",
		"spec.args[=\"two\"]":                            "spec.args[1]",
		"spec.args[7]":                                   "spec.args",
		"":                                               "",
		"<nil>":                                          "",
		"spec.ports[":                                    "spec.ports",
		"[[[":                                            "",
		"spec..ports":                                    "spec",
		strings.Repeat("spec.", 2000):                    "spec.spec",
	} {
		if got := locate(content, text).String(); got != want {
			t.Errorf("%.80s is %s, want %s", text, got, want)
		}
	}
	if value, found := locate(content, "spec.ports[1].name").value(content); !found || value != "second" {
		t.Errorf("the value is %v", value)
	}
}

func TestExpression(t *testing.T) {
	for text, want := range map[string]string{
		"{{ X }}":           "X",
		"{{- X | int -}}":   "X | int",
		" {{X}} ":           "X",
		"a{{ X }}":          "",
		"{{ X }}{{ Y }}":    "",
		"{{ X }} and {{Y}}": "",
		"plain":             "",
	} {
		if got, _ := expression(text); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
