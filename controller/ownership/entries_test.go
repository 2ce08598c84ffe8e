package ownership

import (
	"strings"
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Entries count if the template has their list, wherever else that is.
func TestEntriesIn(t *testing.T) {
	content := map[string]any{
		"metadata": map[string]any{"finalizers": []any{"a"}},
		"spec": map[string]any{
			"tags": []any{},
			"containers": []any{
				map[string]any{"name": "main", "env": []any{map[string]any{"name": "A"}}}, map[string]any{"name": "other"},
			},
		},
	}
	// Users may nest any number of levels; those of a template are bounded.
	const levels = 2000
	deep := `{"f:spec":{"f:tags":{` + strings.Repeat(`"v:1":{`, levels) + strings.Repeat("}", levels+3)
	for fields, want := range map[string]int{
		`{"f:spec":{"f:tags":{"v:\"x\"":{}}}}`:                                                      1,
		`{"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{"f:env":{"k:{\"name\":\"B\"}":{}}}}}}`: 1,
		`{"f:spec":{"f:containers":{"k:{\"name\":\"new\"}":{".":{},"f:image":{}}}}}`:                1,
		`{"f:spec":{"f:volumes":{"k:{\"name\":\"data\"}":{}}}}`:                                     0,
		`{"f:spec":{"f:replicas":{}}}`:                                                              0,
		`{"f:metadata":{"f:finalizers":{"v:\"b\"":{}}}}`:                                            0,
		`{"f:status":{"f:tags":{"v:1":{}}}}`:                                                        0,
		deep:                                                                                        0,
	} {
		set := &fieldpath.Set{}
		if err := set.FromJSON(strings.NewReader(fields)); err != nil {
			t.Fatal(err)
		}
		if got := EntriesIn(content, set).Size(); got != want {
			t.Errorf("%.90s: %d entries, want %d", fields, got, want)
		}
	}
}
