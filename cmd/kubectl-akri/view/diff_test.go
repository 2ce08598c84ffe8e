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
		reason      string
		changes     Changes
		want        string
		differences int
		rejections  int
	}{
		"nothing": {
			reason:  "a parent without changes is not printed",
			changes: Changes{Parent: "Instance ns/cam"},
		},
		"noise": {
			reason: "metadata that the API server sets is not a difference",
			changes: Changes{Parent: "Instance ns/cam", Objects: []Change{{Verb: Changed, Object: a, Before: configMap("old"),
				After: sameButNoise}}},
		},
		"changed": {
			reason: "the object, its template and the lines that differ are printed",
			changes: Changes{Parent: "Instance ns/cam", Objects: []Change{
				{Verb: Changed, Object: a, Template: "instanceBrokerResources[0]", Why: "because", Before: configMap("old"), After: configMap("new")},
			}},
			want: `# Instance ns/cam
# ~ ConfigMap ns/a  changed: because  (instanceBrokerResources[0])
--- live/ConfigMap/ns/a
+++ desired/ConfigMap/ns/a
@@ -1,6 +1,6 @@
 apiVersion: v1
 data:
-  text: old
+  text: new
 kind: ConfigMap
 metadata:
   name: a
`,
			differences: 1,
		},
		"created for a sample": {
			reason: "a sample device must not be mistaken for a real one",
			changes: Changes{Parent: "Instance ns/cam", Sample: true, Objects: []Change{
				{Verb: Created, Object: a, After: map[string]any{"kind": "ConfigMap"}},
			}},
			want: `# Instance ns/cam  (SAMPLE: a sample device; none was found yet)
# + ConfigMap ns/a  created
--- live/ConfigMap/ns/a
+++ desired/ConfigMap/ns/a
@@ -0,0 +1 @@
+kind: ConfigMap
`,
			differences: 1,
		},
		"deleted, orphaned, waiting": {
			reason: "an unchanged object is marked as such",
			changes: Changes{Parent: "p", Objects: []Change{
				{Verb: Deleted, Object: a, Before: map[string]any{"kind": "ConfigMap"}},
				{Verb: Orphaned, Object: a, Before: configMap("a"), After: configMap("a")},
				{Verb: Waiting, Object: a, Why: "it is being deleted", Before: configMap("a"), After: configMap("a")},
			}},
			want: `# p
# - ConfigMap ns/a  deleted
--- live/ConfigMap/ns/a
+++ desired/ConfigMap/ns/a
@@ -1 +0,0 @@
-kind: ConfigMap
# - ConfigMap ns/a  orphaned
#   unchanged
# … ConfigMap ns/a  waiting: it is being deleted
#   unchanged
`,
			differences: 3,
		},
		"rejected": {
			reason: "all lines of the API server's message are comments",
			changes: Changes{Parent: "p", Problems: []string{"no such property"}, Objects: []Change{
				{Verb: Rejected, Object: a, Template: "t", Why: "one\ntwo"},
			}},
			want: `# p
# ! no such property
# ! ConfigMap ns/a  rejected: one
#   two  (t)
`,
			rejections: 2,
		},
		"Secret": {
			reason: "values are hidden, and those that differ are marked",
			changes: Changes{Parent: "p", Objects: []Change{{
				Verb: Changed, Object: s,
				Before: secret(map[string]any{"same": "GEHEIM", "other": "GEHEIM", "gone": "GEHEIM"}),
				After:  secret(map[string]any{"same": "GEHEIM", "other": "SECRETO", "come": "SECRETO"}),
			}}},
			want: `# p
# ~ Secret ns/s  changed
--- live/Secret/ns/s
+++ desired/Secret/ns/s
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
			differences: 1,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			preview := NewPreview([]Changes{tc.changes})
			differences, rejections := preview.Count()
			if err := preview.Text(&out); err != nil {
				t.Fatal(err)
			}
			if out.String() != tc.want {
				t.Errorf("%s\ngot\n%s\nwant\n%s", tc.reason, out.String(), tc.want)
			}
			if differences != tc.differences || rejections != tc.rejections {
				t.Errorf("got %d differences and %d rejections, want %d and %d", differences, rejections, tc.differences, tc.rejections)
			}
		})
	}
}

// TestDiffDoesNotModifyItsInput checks that only the output is redacted.
func TestDiffDoesNotModifyItsInput(t *testing.T) {
	before := secret(map[string]any{"key": "GEHEIM"})
	NewPreview([]Changes{{Objects: []Change{{Verb: Deleted, Object: inventory.Ref{Kind: "Secret"}, Before: before}}}})
	if before["data"].(map[string]any)["key"] != "GEHEIM" {
		t.Error("the object was redacted in place")
	}
}
