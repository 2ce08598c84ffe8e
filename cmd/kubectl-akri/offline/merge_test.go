package offline

import (
	"slices"
	"testing"

	"akri.sh/akri/internal/finding"
)

func TestMerge(t *testing.T) {
	const template = "instanceBrokerResources[0]"
	at := func(line int) finding.Position { return finding.Position{File: "a.yaml", Line: line, Column: 1} }
	for name, tc := range map[string]struct {
		bySchema, loading finding.Finding
		want              []string // the causes
	}{
		"loading says less about the same field": {
			bySchema: finding.Finding{Position: at(2), Mistake: finding.Mistake{Path: "spec.capacity", Cause: "schema"}},
			loading:  finding.Finding{Position: at(2), Mistake: finding.Mistake{Path: "spec.capacity", Cause: "loading"}},
			want:     []string{"schema"},
		},
		"the schema names a field below": {
			bySchema: finding.Finding{Position: at(3), Mistake: finding.Mistake{Path: "spec.brokerProperties.A", Cause: "schema"}},
			loading:  finding.Finding{Position: at(2), Mistake: finding.Mistake{Path: "spec.brokerProperties", Cause: "loading"}},
			want:     []string{"schema"},
		},
		"the schema names an element below": {
			bySchema: finding.Finding{Position: at(3), Mistake: finding.Mistake{Path: "spec.list[0]", Cause: "schema"}},
			loading:  finding.Finding{Position: at(2), Mistake: finding.Mistake{Path: "spec.list", Cause: "loading"}},
			want:     []string{"schema"},
		},
		// A field whose name only begins with that of another is not below it.
		"the schema names another field with the same beginning": {
			bySchema: finding.Finding{Position: at(3), Mistake: finding.Mistake{Path: "spec.brokerPropertiesX", Cause: "schema"}},
			loading:  finding.Finding{Position: at(2), Mistake: finding.Mistake{Path: "spec.brokerProperties", Cause: "loading"}},
			want:     []string{"schema", "loading"},
		},
		"inside a template, loading knows more": {
			bySchema: finding.Finding{Position: at(5), Mistake: finding.Mistake{Path: "spec." + template + ".spec", Cause: "schema"}},
			loading:  finding.Finding{Position: at(5), Mistake: finding.Mistake{Path: template + ".spec", Cause: "loading"}},
			want:     []string{"loading"},
		},
		"another file": {
			bySchema: finding.Finding{Position: at(2), Mistake: finding.Mistake{Path: "spec.capacity", Cause: "schema"}},
			loading: finding.Finding{
				Position: finding.Position{File: "b.yaml", Line: 2, Column: 1}, Mistake: finding.Mistake{Path: "spec.capacity", Cause: "loading"},
			},
			want: []string{"schema", "loading"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, f := range merge([]finding.Finding{tc.bySchema}, []finding.Finding{tc.loading}) {
				got = append(got, f.Cause)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got the findings of %q, want %q", got, tc.want)
			}
		})
	}
}
