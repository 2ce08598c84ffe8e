package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
)

const example = `
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: cam}
spec:
  discoveryHandler: {name: debugEcho}
  brokerProperties: {ROOM: hall}
  sampleProperties: {TEXT: sampled}
  instanceBrokerResources:
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: "{{INSTANCE_NAME}}"}
    data: {text: "{{INSTANCE_PROPERTIES.TEXT}} in {{INSTANCE_PROPERTIES.ROOM}}"}
  - apiVersion: v1
    kind: Service
    metadata: {name: "{{INSTANCE_NAME}}-svc"}
    spec: {ports: [{port: 80}], selector: "{{LABEL_SELECTOR}}"}
  - apiVersion: v1
    kind: Secret
    metadata: {name: "{{INSTANCE_NAME}}-key"}
    stringData: {key: GEHEIM}
  configurationBrokerResources:
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: group}
    data: {nodes: "on {{NODES}}"}
`

// changed is the example with words replaced.
func changed(t *testing.T, oldnew ...string) string {
	t.Helper()
	for i := 0; i < len(oldnew); i += 2 {
		if !strings.Contains(example, oldnew[i]) {
			t.Fatalf("%q is not in the example", oldnew[i])
		}
	}
	return strings.NewReplacer(oldnew...).Replace(example)
}

// TestDiffOfAFile goes the way of a user: what would come of it, apply, nothing
// differs; what would an edit change, apply, and just that has changed.
func TestDiffOfAFile(t *testing.T) {
	w := newWorld(t)
	w.control()
	before := w.run(example, "diff", "-f", "-")
	before.want(t, 1,
		"/cam-", "(SAMPLE: a made-up device", "# + ConfigMap", "+  text: sampled in hall", "# + Service", "# + Secret", "+  key: '***'",
		"# Configuration "+w.namespace+"/cam  (SAMPLE", "+  nodes: on ", "note: ", "no device has been found yet", "!error", "!R0VIRUlN", "!GEHEIM")
	var configuration v0.Configuration
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "cam"}, &configuration); !apierrors.IsNotFound(err) {
		t.Fatalf("diff has made the Configuration: %v", err)
	}

	w.apply(example)
	instance := w.instance("cam", "cam-1", map[string]string{"TEXT": "foo", "ROOM": "hall"})
	w.applied("cam")
	if nothing := w.run(example, "diff", "-f", "-"); nothing.code != 0 || nothing.out != "" || nothing.err != "" {
		t.Errorf("the applied Configuration differs from itself: %+v", nothing)
	}

	edited := changed(t, "hall", "attic", "port: 80", "port: 81", "GEHEIM", "SECRETO", "name: group", `name: "{{CONFIGURATION_NAME}}-group"`)
	file := filepath.Join(t.TempDir(), "edited.yaml")
	if err := os.WriteFile(file, []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
	all := w.versions()
	w.run("", "diff", "-f", file).want(t, 1,
		"# Instance "+w.namespace+"/cam-1\n",
		"# ~ ConfigMap "+w.namespace+"/cam-1  changed", "(instanceBrokerResources[0])", "-  text: foo in hall", "+  text: foo in attic",
		"# ~ Service", "-  - port: 80", "+  - port: 81",
		"# ~ Secret", "-  key: '*** (before)'", "+  key: '*** (after)'",
		"# Configuration "+w.namespace+"/cam\n", "# + ConfigMap "+w.namespace+"/cam-group", "(configurationBrokerResources[0])",
		"# - ConfigMap "+w.namespace+"/group  deleted: no template renders it any more",
		"!managedFields", "!SAMPLE", "!GEHEIM", "!SECRETO", "!R0VIRUlN", "!U0VDUkVUTw")
	if now := w.versions(); now != all {
		t.Errorf("diff has written:\nbefore %s\nafter  %s", all, now)
	}

	// The agent overlays the new brokerProperties, the controller applies.
	w.apply(edited)
	instance.Spec.BrokerProperties["ROOM"] = "attic"
	if err := w.Patch(t.Context(), instance, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"brokerProperties":{"ROOM":"attic"}}}`))); err != nil {
		t.Fatal(err)
	}
	w.eventually("the edit is applied", func() string {
		if got := w.run("", "diff", "cam"); got.code != 0 {
			return got.out + got.err
		}
		return ""
	})
	var group corev1.ConfigMap
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "cam-group"}, &group); err != nil {
		t.Error(err)
	}
}

// versions are the resourceVersions of what is in the namespace.
func (w *world) versions() string {
	w.t.Helper()
	var text strings.Builder
	for _, list := range []client.ObjectList{&corev1.ConfigMapList{}, &corev1.ServiceList{}, &corev1.SecretList{}, &v0.ConfigurationList{}, &v0.InstanceList{}} {
		if err := w.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil {
			w.t.Fatal(err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			object := item.(client.Object)
			text.WriteString(object.GetName() + "@" + object.GetResourceVersion() + " ")
			return nil
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
	return text.String()
}

// TestDiffOfTheCluster: what the controller, which is stopped, would repair.
func TestDiffOfTheCluster(t *testing.T) {
	w := newWorld(t)
	stop := w.control()
	w.apply(example)
	w.instance("cam", "cam-1", map[string]string{"TEXT": "foo", "ROOM": "hall"})
	w.applied("cam")
	w.run("", "diff", "cam").want(t, 0, "!#")
	stop()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "cam-1-svc"}}
	if err := w.Delete(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	edited := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "cam-1"}}
	if err := w.Patch(t.Context(), edited, client.RawPatch(types.MergePatchType, []byte(`{"data":{"text":"bar","theirs":"x"}}`))); err != nil {
		t.Fatal(err)
	}
	w.run("", "diff", "cam").want(t, 1,
		"# ~ ConfigMap "+w.namespace+"/cam-1  changed: a field managed by Akri was changed", "-  text: bar", "+  text: foo in hall", "   theirs: x",
		"# + Service "+w.namespace+"/cam-1-svc", "!Secret")
	w.run("", "diff", "nope").want(t, 2, `error: there is no Configuration "nope"`)
}

// TestDiffTellsWhatWouldBeRefused: conflicts, immutable fields and the API
// server's words, before anybody is hurt by them.
func TestDiffTellsWhatWouldBeRefused(t *testing.T) {
	w := newWorld(t)
	w.control()
	const fixed = `
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: "{{INSTANCE_NAME}}-fixed"DIRECTIVES}
    immutable: true
    data: {text: old}
  configurationBrokerResources:`
	recreate := strings.Replace(fixed, "DIRECTIVES", `, annotations: {akri.sh/on-immutable: recreate}`, 1)
	fail := strings.Replace(fixed, "DIRECTIVES", "", 1)
	w.apply(changed(t, "\n  configurationBrokerResources:", fail))
	w.instance("cam", "cam-1", map[string]string{"TEXT": "foo", "ROOM": "hall"})
	w.applied("cam")
	w.apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: theirs}")

	edit := func(text string) string { return strings.Replace(text, "text: old", "text: new", 1) }
	t.Run("immutable", func(t *testing.T) {
		w.run(changed(t, "\n  configurationBrokerResources:", edit(fail), "name: group", "name: other"), "diff", "-f", "-").want(t, 2,
			"# ! ConfigMap "+w.namespace+"/cam-1-fixed  refused: ", "field is immutable when `immutable` is set",
			"# + ConfigMap "+w.namespace+"/other", "error: 1 of the objects would be refused")
	})
	t.Run("recreate", func(t *testing.T) {
		w.run(changed(t, "\n  configurationBrokerResources:", edit(recreate)), "diff", "-f", "-").want(t, 1,
			"# ± ConfigMap "+w.namespace+"/cam-1-fixed  deleted and made anew: the template changes a field that is immutable", "-  text: old", "+  text: new", "!x-akri-diff")
	})
	t.Run("recreate what would be refused", func(t *testing.T) {
		w.run(changed(t, "\n  configurationBrokerResources:", strings.Replace(edit(recreate), "data: {text: new}", "data: {no/key: new}", 1)), "diff", "-f", "-").want(t, 2,
			"# ! ConfigMap "+w.namespace+"/cam-1-fixed  refused: ", "no/key")
	})
	t.Run("conflict", func(t *testing.T) {
		w.run(changed(t, "name: group", "name: theirs"), "diff", "-f", "-").want(t, 2, "/theirs  refused: ConfigMap theirs exists and was not made for this Configuration",
			"# … ConfigMap "+w.namespace+"/group  waits: to be deleted when all of the above is applied")
	})
	t.Run("take", func(t *testing.T) {
		w.run(changed(t, "{name: group}", "{name: theirs, annotations: {akri.sh/on-conflict: take}}"), "diff", "-f", "-").want(t, 1,
			"# ~ ConfigMap "+w.namespace+"/theirs  changed: it exists, and becomes this Configuration's", "+data:")
	})
	t.Run("skip", func(t *testing.T) {
		w.run(changed(t, "{name: group}", "{name: theirs, annotations: {akri.sh/on-conflict: skip}}"), "diff", "-f", "-").want(t, 1, "!theirs", "# - ConfigMap "+w.namespace+"/group")
	})
	t.Run("invalid object", func(t *testing.T) {
		w.run(changed(t, "port: 80", "port: 80000"), "diff", "-f", "-").want(t, 2, "# ! Service", "must be between 1 and 65535")
	})
	t.Run("render", func(t *testing.T) {
		w.run(changed(t, "PROPERTIES.TEXT", "PROPERTIES.ABSENT"), "diff", "-f", "-").want(t, 2,
			"# ! instanceBrokerResources[0].data.text: ", `property "ABSENT" is not there`, "!deleted")
	})
	t.Run("template", func(t *testing.T) {
		w.run(changed(t, "{{NODES}}", "{{NODE"), "diff", "-f", "-").want(t, 2, "# ! configurationBrokerResources[0].data.nodes: ")
	})
	t.Run("kind", func(t *testing.T) {
		w.run(changed(t, "kind: Secret", "kind: Secrez"), "diff", "-f", "-").want(t, 2, `the API server has no kind "Secrez"`)
	})
	t.Run("confined", func(t *testing.T) {
		cluster := changed(t, "apiVersion: v1\n    kind: Secret", "apiVersion: scheduling.k8s.io/v1\n    kind: PriorityClass", "stringData: {key: GEHEIM}", "value: 7")
		w.run(cluster, "diff", "-f", "-").want(t, 2, "PriorityClass", "is cluster-scoped")
		w.run(cluster, "diff", "-f", "-", "--allow-cluster-scoped").want(t, 1, "# + PriorityClass.scheduling.k8s.io cam-1-key  created", "+value: 7")
	})
	t.Run("Configuration", func(t *testing.T) {
		w.run(changed(t, "{name: debugEcho}", "{name: debugEcho, nam: x}"), "diff", "-f", "-").want(t, 2, "does not accept the Configuration", `unknown field "spec.discoveryHandler.nam"`)
		w.run("kind: Service", "diff", "-f", "-").want(t, 2, "there is no Configuration in stdin")
		w.run(changed(t, "{name: cam}", "{name: cam, namespace: far}"), "diff", "-f", "-", "-n", w.namespace).want(t, 2, `the namespace of Configuration cam is "far"`)
	})
	t.Run("discovery", func(t *testing.T) {
		w.run(changed(t, "debugEcho", "udev"), "diff", "-f", "-").want(t, 1, "the discovery changes as well")
	})
}

// TestDiffReplacesWhatHasEnded: a Pod that will not run again is made anew, and
// the page shows the new one.
func TestDiffReplacesWhatHasEnded(t *testing.T) {
	w := newWorld(t)
	stop := w.control()
	w.apply(changed(t, "kind: Service", "kind: Pod", `{ports: [{port: 80}], selector: "{{LABEL_SELECTOR}}"}`, "{containers: [{name: a, image: a}]}"))
	w.instance("cam", "cam-1", map[string]string{"TEXT": "foo", "ROOM": "hall"})
	pod := &corev1.Pod{}
	w.eventually("Pod", func() string {
		if err := w.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "cam-1-svc"}, pod); err != nil {
			return err.Error()
		}
		return ""
	})
	w.eventually("nothing to do", func() string {
		if got := w.run("", "diff", "cam"); got.code != 0 {
			return got.out + got.err
		}
		return ""
	})
	stop()
	if err := w.Status().Patch(t.Context(), pod, client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Failed","reason":"Evicted"}}`))); err != nil {
		t.Fatal(err)
	}
	w.run("", "diff", "cam").want(t, 1, "# ± Pod "+w.namespace+"/cam-1-svc  deleted and made anew: it has terminated: ", "Evicted", "(instanceBrokerResources[1])", "!x-akri-diff")
}
