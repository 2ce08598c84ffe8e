package offline

import (
	"slices"
	"testing"

	"akri.sh/akri/cmd/kubectl-akri/manifest"
	"akri.sh/akri/templating/source"
)

func TestMerge(t *testing.T) {
	const template = "instanceBrokerResources[0]"
	at := func(line int) source.Position { return source.Position{File: "a.yaml", Line: line, Column: 1} }
	for name, tc := range map[string]struct {
		bySchema, loading manifest.Finding
		want              []string // the causes
	}{
		"loading says less about the same field": {
			bySchema: manifest.Finding{At: at(2), Place: "spec.capacity", Cause: "schema"},
			loading:  manifest.Finding{At: at(2), Place: "spec.capacity", Cause: "loading"},
			want:     []string{"schema"},
		},
		"the schema names a field below": {
			bySchema: manifest.Finding{At: at(3), Place: "spec.brokerProperties.A", Cause: "schema"},
			loading:  manifest.Finding{At: at(2), Place: "spec.brokerProperties", Cause: "loading"},
			want:     []string{"schema"},
		},
		"the schema names an element below": {
			bySchema: manifest.Finding{At: at(3), Place: "spec.list[0]", Cause: "schema"},
			loading:  manifest.Finding{At: at(2), Place: "spec.list", Cause: "loading"},
			want:     []string{"schema"},
		},
		// A field whose name only begins with that of another is not below it.
		"the schema names another field with the same beginning": {
			bySchema: manifest.Finding{At: at(3), Place: "spec.brokerPropertiesX", Cause: "schema"},
			loading:  manifest.Finding{At: at(2), Place: "spec.brokerProperties", Cause: "loading"},
			want:     []string{"schema", "loading"},
		},
		"inside a template, loading knows more": {
			bySchema: manifest.Finding{At: at(5), Place: "spec." + template + ".spec", Template: template, Cause: "schema"},
			loading:  manifest.Finding{At: at(5), Place: "spec." + template + ".spec", Template: template, Cause: "loading"},
			want:     []string{"loading"},
		},
		"another file": {
			bySchema: manifest.Finding{At: at(2), Place: "spec.capacity", Cause: "schema"},
			loading:  manifest.Finding{At: source.Position{File: "b.yaml", Line: 2, Column: 1}, Place: "spec.capacity", Cause: "loading"},
			want:     []string{"schema", "loading"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, f := range merge([]manifest.Finding{tc.bySchema}, []manifest.Finding{tc.loading}) {
				got = append(got, f.Cause)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got the findings of %q, want %q", got, tc.want)
			}
		})
	}
}
