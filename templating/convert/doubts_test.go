package convert_test

import (
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	"akri.sh/akri/templating/convert"
)

func TestDoubts(t *testing.T) {
	var spec map[string]any
	if err := yaml.Unmarshal([]byte(`
brokerProperties: {A: "{{ literal }}"}
brokerSpec:
  brokerPodSpec:
    containers:
    - name: a
      image: x
      env: [{name: A, value: PLACEHOLDER}, {name: B, value: "{{ .Node }}"}, {name: PLACEHOLDER_TWO, value: of PLACEHOLDER}]
      resources:
        limits: {"{{PLACEHOLDER}}": 1, akri.sh/cam: 1, akri.sh/other: 1}
        requests: {"{{ PLACEHOLDER }}": "1"}
      command: [akri.sh/cam]
brokerJobSpec: {template: {metadata: {labels: {"{{PLACEHOLDER}}": x}}}}
instanceServiceSpec: {ports: [{port: 80}], externalName: "{{ x }}"}
instanceBrokerResources: [{data: {a: "{{ x }}"}}]
`), &spec); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range convert.Doubts(spec, "cam") {
		got = append(got, d.Field.String())
	}
	const container = "brokerSpec.brokerPodSpec.containers[0]."
	want := []string{
		`brokerJobSpec.template.metadata.labels["{{PLACEHOLDER}}"]`,
		container + "env[0].value", container + "env[1].value",
		container + `resources.limits["akri.sh/cam"]`, container + `resources.requests["{{ PLACEHOLDER }}"]`,
		"instanceServiceSpec.externalName",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
	if found := convert.Doubts(nil, "cam"); found != nil {
		t.Errorf("without a spec: %v", found)
	}
}
