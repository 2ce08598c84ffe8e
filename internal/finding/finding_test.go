package finding

import (
	"encoding/json"
	"testing"
)

func TestFinding(t *testing.T) {
	at := Position{File: "a.yaml", Line: 2, Column: 3}
	for _, tc := range []struct {
		finding    Finding
		text, json string
	}{
		{Finding{Mistake: Mistake{Cause: "no Configuration"}}, "no Configuration", `{"level":"error","message":"no Configuration"}`},
		{Finding{Mistake: Mistake{Path: "spec", Cause: "x is missing", Hint: "add x"}}, "spec: x is missing; add x",
			`{"level":"error","path":"spec","message":"x is missing","remedy":"add x"}`},
		{Finding{Level: Warning, Position: at, For: "Instance i", Text: "'y'", Mistake: Mistake{Path: "spec", Cause: "no x"}},
			"a.yaml:2:3: spec: 'y': no x",
			`{"level":"warning","file":"a.yaml","line":2,"column":3,"for":"Instance i","path":"spec","message":"no x"}`},
	} {
		if got := tc.finding.Error(); got != tc.text {
			t.Errorf("got the error %q, want %q", got, tc.text)
		}
		if got, err := json.Marshal(tc.finding); err != nil || string(got) != tc.json {
			t.Errorf("got the JSON %s (%v), want %s", got, err, tc.json)
		}
	}
}
