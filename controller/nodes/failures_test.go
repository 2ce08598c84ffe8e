package nodes_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/nodes"
)

// report applies a node's failures as its agent does.
func (w *world) report(node, configuration string, messages ...string) {
	w.T.Helper()
	failures := make([]v0.DiscoveryFailure, len(messages))
	for i, message := range messages {
		failures[i] = v0.DiscoveryFailure{Node: node, Handler: fmt.Sprintf("h@%d", i), Message: message}
	}
	data, err := json.Marshal(map[string]any{
		"apiVersion": v0.GroupVersion.String(), "kind": v0.ConfigurationKind.Kind,
		"metadata": map[string]any{"namespace": w.Namespace, "name": configuration},
		"status":   map[string]any{"discoveryFailures": failures},
	})
	if err != nil {
		w.T.Fatal(err)
	}
	target := &v0.Configuration{}
	target.Namespace, target.Name = w.Namespace, configuration
	if err := w.Status().Patch(w.T.Context(), target, client.RawPatch(types.ApplyPatchType, data),
		client.FieldOwner(v0.FieldManagerOfNode(node)), client.ForceOwnership); err != nil {
		w.T.Error(err)
	}
}

// failing returns the nodes whose failures a Configuration lists.
func (w *world) failing(configuration string) []string {
	w.T.Helper()
	var object v0.Configuration
	if err := w.Get(w.T.Context(), w.Key(configuration), &object); err != nil {
		w.T.Fatal(err)
	}
	var names []string
	for _, failure := range object.Status.DiscoveryFailures {
		names = append(names, failure.Node)
	}
	return slices.Compact(names)
}

// reportedBy waits until a Configuration lists the failures of exactly these nodes. Then
// only their agents are field managers of its status.
func (w *world) reportedBy(configuration string, want ...string) {
	w.T.Helper()
	w.Eventually("failures of "+configuration, func() string {
		if got := w.failing(configuration); !slices.Equal(got, want) {
			return fmt.Sprintf("of %q, want %q", got, want)
		}
		return ""
	})
	var object v0.Configuration
	if err := w.Get(w.T.Context(), w.Key(configuration), &object); err != nil {
		w.T.Fatal(err)
	}
	var managers []string
	for _, entry := range object.ManagedFields {
		if entry.Subresource == "status" {
			managers = append(managers, entry.Manager)
		}
	}
	wantManagers := make([]string, len(want))
	for i, node := range want {
		wantManagers[i] = v0.FieldManagerOfNode(node)
	}
	slices.Sort(managers)
	slices.Sort(wantManagers)
	if !slices.Equal(managers, wantManagers) {
		w.T.Errorf("the field managers of the status are %q, want %q", managers, wantManagers)
	}
}

func TestADeletedNodeIsRemovedWithItsFailures(t *testing.T) {
	w := newWorld(t)
	a, b, c, d := w.node("a"), w.node("b"), w.node("c"), w.node("d")
	w.configuration("cams")
	w.configuration("doors")
	w.report(b, "cams", "no route", "no answer")
	w.report(a, "cams", "no route")
	w.report(c, "cams", "no route")
	w.condition(c, corev1.ConditionUnknown)
	w.report(w.Namespace+"-never", "doors", "no route") // it was deleted while no controller ran
	w.run(nodes.Options{NotReadyGrace: short, GoneGrace: short})
	w.reportedBy("doors")
	w.deleteNode(b)
	w.reportedBy("cams", a, c) // c may return

	// A node of the same name reports again.
	w.node("b")
	w.report(b, "cams", "no route")
	w.report(d, "doors", "no route")
	w.deleteNode(d)
	w.reportedBy("doors") // later than b would have been
	w.reportedBy("cams", a, c, b)
}

// Many agents write a status. What they write is kept.
func TestAReportAtTheSameTimeIsKept(t *testing.T) {
	w := newWorld(t)
	a, b, c := w.node("a"), w.node("b"), w.node("c")
	w.configuration("cams")
	w.report(a, "cams", "no route")
	w.report(b, "cams", "no route")
	w.once(http.MethodPatch, "/configurations/cams/status", func() {
		// The other entries move up, and the deleted node returns.
		w.report(a, "cams")
		if err := w.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: b}}); err != nil {
			t.Error(err)
		}
		w.report(b, "cams", "no answer")
		w.report(c, "cams", "no route")
	})
	w.run(nodes.Options{NotReadyGrace: never, GoneGrace: short})
	w.deleteNode(b)
	w.Eventually("the reports", func() string {
		if got := w.failing("cams"); !slices.Contains(got, c) {
			return fmt.Sprintf("of %q", got)
		}
		return ""
	})
	w.deleteNode(c)
	w.reportedBy("cams", b) // c is removed later than b would have been
}

// An agent may be alive although its node was deleted. Its reports are not fought, and those of
// nodes that exist cost nothing.
func TestAnAgentThatReportsAgainIsNotFought(t *testing.T) {
	w := newWorld(t)
	a, b, c := w.node("a"), w.node("b"), w.node("c")
	w.configuration("cams")
	w.configuration("doors")
	w.report(b, "cams", "no route")
	w.run(nodes.Options{NotReadyGrace: never, GoneGrace: short})
	w.deleteNode(b)
	w.reportedBy("cams")
	before := w.requests.Load()
	w.report(b, "cams", "no route")
	for i := range 10 {
		w.report(a, "cams", fmt.Sprint("no route ", i))
	}
	w.report(c, "doors", "no route")
	w.deleteNode(c)
	w.reportedBy("doors") // later than b would have been
	w.reportedBy("cams", b, a)
	// For c: the node, the patch.
	if sent := w.requests.Load() - before; sent != 2 {
		t.Errorf("%d requests, want 2 for the node that was deleted", sent)
	}
}
