package view

import (
	"strings"
	"testing"

	"akri.sh/akri/controller/inventory"
)

func configMap(text string) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "a", "resourceVersion": text, "managedFields": []any{text}},
		"data":     map[string]any{"text": text},
		"status":   text,
	}
}

func secret(values map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Secret",
		"metadata": map[string]any{"name": "s", "annotations": map[string]any{
			"kubectl.kubernetes.io/last-applied-configuration": "GEHEIM", "theirs": "x",
		}},
		"data": values,
	}
}

func TestDiff(t *testing.T) {
	a := inventory.Ref{Kind: "ConfigMap", Namespace: "ns", Name: "a"}
	s := inventory.Ref{Kind: "Secret", Namespace: "ns", Name: "s"}
	sameButNoise := configMap("old")
	sameButNoise["status"] = "new"
	cases := map[string]struct {
		reason  string
		changes Changes
		want    string
		summary Summary
	}{
		"nothing": {
			reason:  "a parent to which nothing happens is not mentioned",
			changes: Changes{Parent: "Instance ns/cam"},
		},
		"noise": {
			reason:  "what the API server writes about an object is no difference",
			changes: Changes{Parent: "Instance ns/cam", Objects: []Change{{Verb: Changed, Object: a, Before: configMap("old"), After: sameButNoise}}},
		},
		"changed": {
			reason: "the place in the Configuration, the object, and the lines that differ",
			changes: Changes{Parent: "Instance ns/cam", Objects: []Change{
				{Verb: Changed, Object: a, Template: "instanceBrokerResources[0]", Why: "because", Before: configMap("old"), After: configMap("new")},
			}},
			want: `# Instance ns/cam
# ~ ConfigMap ns/a  changed: because  (instanceBrokerResources[0])
--- live/ConfigMap/ns/a
+++ wanted/ConfigMap/ns/a
@@ -1,6 +1,6 @@
 apiVersion: v1
 data:
-  text: old
+  text: new
 kind: ConfigMap
 metadata:
   name: a
`,
			summary: Summary{Differences: 1},
		},
		"created for a sample": {
			reason: "nobody must take a made-up device for a real one",
			changes: Changes{Parent: "Instance ns/cam", Sample: true, Objects: []Change{
				{Verb: Created, Object: a, After: map[string]any{"kind": "ConfigMap"}},
			}},
			want: `# Instance ns/cam  (SAMPLE: a made-up device; none was found yet)
# + ConfigMap ns/a  created
--- live/ConfigMap/ns/a
+++ wanted/ConfigMap/ns/a
@@ -0,0 +1 @@
+kind: ConfigMap
`,
			summary: Summary{Differences: 1},
		},
		"deleted, released, waiting": {
			reason: "what stays as it is says so",
			changes: Changes{Parent: "p", Objects: []Change{
				{Verb: Deleted, Object: a, Before: map[string]any{"kind": "ConfigMap"}},
				{Verb: Released, Object: a, Before: configMap("a"), After: configMap("a")},
				{Verb: Waits, Object: a, Why: "it is being deleted", Before: configMap("a"), After: configMap("a")},
			}},
			want: `# p
# - ConfigMap ns/a  deleted
--- live/ConfigMap/ns/a
+++ wanted/ConfigMap/ns/a
@@ -1 +0,0 @@
-kind: ConfigMap
# - ConfigMap ns/a  left to itself
#   it stays as it is
# … ConfigMap ns/a  waits: it is being deleted
#   it stays as it is
`,
			summary: Summary{Differences: 3},
		},
		"refused": {
			reason: "all lines of the API server's words are comments",
			changes: Changes{Parent: "p", Problems: []string{"no such property"}, Objects: []Change{
				{Verb: Refused, Object: a, Template: "t", Why: "one\ntwo"},
			}},
			want: `# p
# ! no such property
# ! ConfigMap ns/a  refused: one
#   two  (t)
`,
			summary: Summary{Refusals: 2},
		},
		"Secret": {
			reason: "values are hidden, and what differs is told",
			changes: Changes{Parent: "p", Objects: []Change{{
				Verb: Changed, Object: s,
				Before: secret(map[string]any{"same": "GEHEIM", "other": "GEHEIM", "gone": "GEHEIM"}),
				After:  secret(map[string]any{"same": "GEHEIM", "other": "SECRETO", "come": "SECRETO"}),
			}}},
			want: `# p
# ~ Secret ns/s  changed
--- live/Secret/ns/s
+++ wanted/Secret/ns/s
@@ -1,7 +1,7 @@
 apiVersion: v1
 data:
-  gone: '***'
-  other: '*** (before)'
+  come: '***'
+  other: '*** (after)'
   same: '***'
 kind: Secret
 metadata:
`,
			summary: Summary{Differences: 1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			summary, err := Diff(&out, []Changes{tc.changes})
			if err != nil {
				t.Fatal(err)
			}
			if out.String() != tc.want {
				t.Errorf("%s\ngot\n%s\nwant\n%s", tc.reason, out.String(), tc.want)
			}
			if summary != tc.summary {
				t.Errorf("counted %+v, want %+v", summary, tc.summary)
			}
		})
	}
}

// TestDiffLeavesItsInputAlone: the caller's objects still hold what was hidden.
func TestDiffLeavesItsInputAlone(t *testing.T) {
	before := secret(map[string]any{"key": "GEHEIM"})
	if _, err := Diff(&strings.Builder{}, []Changes{{Objects: []Change{{Verb: Deleted, Object: inventory.Ref{Kind: "Secret"}, Before: before}}}}); err != nil {
		t.Fatal(err)
	}
	if before["data"].(map[string]any)["key"] != "GEHEIM" {
		t.Error("the object was redacted in place")
	}
}
