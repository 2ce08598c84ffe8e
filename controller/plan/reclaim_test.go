package plan

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/cputime"
)

const (
	applies = metav1.ManagedFieldsOperationApply
	updates = metav1.ManagedFieldsOperationUpdate
)

func managed(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, APIVersion: "v1", FieldsV1: metav1.NewFieldsV1(fields)}
}

func inVersion(version string, entry metav1.ManagedFieldsEntry) metav1.ManagedFieldsEntry {
	entry.APIVersion = version
	return entry
}

// withPorts returns an object with a list of ports, which is given as JSON.
func withPorts(t *testing.T, ports string) map[string]any {
	t.Helper()
	content := map[string]any{}
	text := `{"apiVersion":"v1","metadata":{"finalizers":["ours"]},"spec":{"ports":` + ports + `}}`
	if err := utiljson.Unmarshal([]byte(text), &content); err != nil {
		t.Fatal(err)
	}
	return content
}

func ports(keys ...string) string {
	var entries []string
	for _, key := range keys {
		entries = append(entries, `"k:{\"port\":`+key+`}":{".":{},"f:port":{}}`)
	}
	return `{"f:spec":{"f:ports":{` + strings.Join(entries, ",") + `}}}`
}

func TestReclaim(t *testing.T) {
	const us = v0.FieldManagerController
	for name, test := range map[string]struct {
		reason    string
		managers  []metav1.ManagedFieldsEntry
		neighbors []string
		desired   string // ports; empty: 80 and 90
		live      string // ports; empty: those of desired, 81, 91 and 443
		replaced  string
	}{
		"complete": {
			reason:   "nothing of ours is missing: the entry was merely added",
			managers: []metav1.ManagedFieldsEntry{managed(us, applies, ports("80", "90")), managed("edit", updates, ports("443"))},
		},
		"replaced": {
			reason:   "an entry is missing, and another client has added one",
			managers: []metav1.ManagedFieldsEntry{managed(us, applies, ports("80")), managed("edit", updates, ports("91"))},
			replaced: ".spec.ports[port=91]",
		},
		"all replaced, by two clients": {
			reason: "managed fields do not say who replaced which",
			managers: []metav1.ManagedFieldsEntry{
				managed(us, applies, `{"f:metadata":{"f:labels":{"f:a":{}}}}`),
				managed("one", updates, ports("81")), managed("two", updates, ports("91")),
			},
			replaced: ".spec.ports[port=81] .spec.ports[port=91]",
		},
		"no field of ours is left": {
			reason:   "the controller has no entry in the managed fields any more",
			managers: []metav1.ManagedFieldsEntry{managed("edit", updates, ports("81"))},
			replaced: ".spec.ports[port=81]",
		},
		"replaced, with an entry of a former template": {
			reason:   "the template has another entry now, which is missing: it is not the number of entries that counts",
			managers: []metav1.ManagedFieldsEntry{managed(us, applies, ports("90")), managed("edit", updates, ports("81"))},
			desired:  `[{"port":80}]`,
			replaced: ".spec.ports[port=81]",
		},
		"one of two that differ in a part of their key that is defaulted": {
			reason: "the other one cannot stand for it",
			managers: []metav1.ManagedFieldsEntry{
				managed(us, applies, ports(`53,\"protocol\":\"UDP\"`)), managed("edit", updates, ports(`54,\"protocol\":\"TCP\"`)),
			},
			desired:  `[{"port":53},{"port":53,"protocol":"UDP"}]`,
			live:     `[{"port":53,"protocol":"UDP"},{"port":54,"protocol":"TCP"}]`,
			replaced: `.spec.ports[port=54,protocol="TCP"]`,
		},
		"replaced in another version of the kind": {
			reason:   "the list has the same path in both",
			managers: []metav1.ManagedFieldsEntry{managed(us, applies, ports("80")), inVersion("v2", managed("edit", updates, ports("91")))},
			replaced: ".spec.ports[port=91]",
		},
		"in another version, as a list of another path": {
			reason:   "the object has no such entry in the template's version",
			managers: []metav1.ManagedFieldsEntry{managed(us, applies, ports("80")), inVersion("v2", managed("edit", updates, ports("92")))},
		},
		"replaced after the template has changed to another version": {
			reason:   "the controller has not applied it since",
			managers: []metav1.ManagedFieldsEntry{inVersion("v2", managed(us, applies, ports("80"))), managed("edit", updates, ports("91"))},
			replaced: ".spec.ports[port=91]",
		},
		"a neighbor": {
			reason:    "it was there when the list was complete",
			managers:  []metav1.ManagedFieldsEntry{managed(us, applies, ports("80")), managed("edit", updates, ports("91", "443"))},
			neighbors: []string{".spec.ports[port=443]"},
			replaced:  ".spec.ports[port=91]",
		},
		"applied by another client": {
			reason: "server-side apply lets appliers share a list",
			managers: []metav1.ManagedFieldsEntry{
				managed(us, applies, ports("80")), managed("other", applies, ports("443")), managed("edit", updates, ports("443", "91")),
			},
			replaced: ".spec.ports[port=91]",
		},
		"without a manager": {
			reason:   "admission has added it",
			managers: []metav1.ManagedFieldsEntry{managed(us, applies, ports("80"))},
		},
		"changed by a subresource": {
			reason: "the status belongs to other controllers",
			managers: []metav1.ManagedFieldsEntry{managed(us, applies, ports("80")), {
				Manager: "manager", Operation: updates, APIVersion: "v1", Subresource: "status", FieldsV1: metav1.NewFieldsV1(ports("91")),
			}},
		},
		"of unknown origin": {
			reason:   "the API server attributes the fields of an object without managers to this one",
			managers: []metav1.ManagedFieldsEntry{managed(us, applies, ports("80")), managed("before-first-apply", updates, ports("91"))},
		},
		"a field of an entry": {
			reason: "the client has changed an entry without adding it",
			managers: []metav1.ManagedFieldsEntry{managed(us, applies, ports("80")),
				managed("edit", updates, `{"f:spec":{"f:ports":{"k:{\"port\":91}":{"f:name":{}}}}}`)},
		},
		"in a list that is not in the template": {
			reason:   "it is not ours",
			managers: []metav1.ManagedFieldsEntry{managed(us, applies, ports()), managed("edit", updates, ports("91"))},
			desired:  "null",
		},
		"the metadata": {
			reason: "finalizers and owners are shared by design",
			managers: []metav1.ManagedFieldsEntry{managed(us, applies, ports("80", "90")),
				managed("gc", updates, `{"f:metadata":{"f:finalizers":{".":{},"v:\"theirs\"":{}}}}`)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			desired := cmp.Or(test.desired, `[{"port":80},{"port":90}]`)
			found := cmp.Or(test.live, `[{"port":80},{"port":81},{"port":90},{"port":91},{"port":443}]`)
			live := &unstructured.Unstructured{Object: withPorts(t, found)}
			live.SetManagedFields(test.managers)
			managers, replaced, err := Reclaim(live, withPorts(t, desired), test.neighbors)
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(replaced)
			if got := strings.Join(replaced, " "); got != test.replaced {
				t.Fatalf("%s: got %q, want %q", test.reason, got, test.replaced)
			}
			for _, path := range replaced {
				if owners := ownersOf(t, managers, path); !slices.Equal(owners, []string{us}) {
					t.Errorf("%s is owned by %v", path, owners)
				}
			}
		})
	}
}

// ownersOf returns the managers that own a path.
func ownersOf(t *testing.T, managers []metav1.ManagedFieldsEntry, path string) []string {
	t.Helper()
	var owners []string
	for _, entry := range managers {
		fields, err := fieldsOf(entry)
		if err != nil {
			t.Fatal(err)
		}
		owns := false
		fields.Iterate(func(p fieldpath.Path) { owns = owns || strings.HasPrefix(p.String(), path) })
		if owns {
			owners = append(owners, entry.Manager)
		}
	}
	return owners
}

// Users choose how many entries an object has, and what its managed fields say of them: the
// repair of one object must not occupy a worker for minutes.
func TestReclaimOfManyEntries(t *testing.T) {
	const number = 20_000
	keys, lists := make([]string, number), make([]string, number)
	for i := range number {
		keys[i] = strconv.Itoa(i)
		lists[i] = `{"port":` + keys[i] + `}`
	}
	all := withPorts(t, "["+strings.Join(lists, ",")+"]")
	live := &unstructured.Unstructured{Object: all}
	live.SetManagedFields([]metav1.ManagedFieldsEntry{
		managed(v0.FieldManagerController, applies, ports(keys[:number/2]...)), managed("edit", updates, ports(keys[number/2:]...)),
	})
	var neighbors []string
	for _, key := range keys[number/2 : number-1] {
		neighbors = append(neighbors, ".spec.ports[port="+key+"]")
	}
	content := withPorts(t, "["+strings.Join(lists[1:number/2+1], ",")+"]")
	var replaced []string
	var err error
	took := cputime.Of(func() { _, replaced, err = Reclaim(live, content, neighbors) })
	if err != nil || !slices.Equal(replaced, []string{".spec.ports[port=19999]"}) {
		t.Errorf("replaced: %q, %v", replaced, err)
	}
	const limit = 15 * time.Second // far above what it takes, and far below what quadratic search would
	if took > limit {
		t.Errorf("it took %v", took)
	} else {
		t.Log(took)
	}
}
