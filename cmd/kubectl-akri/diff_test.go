package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/cmd/kubectl-akri/view"
	"akri.sh/akri/internal/apitest"
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

// changed returns the example with texts replaced.
func changed(t *testing.T, oldnew ...string) string {
	t.Helper()
	for i := 0; i < len(oldnew); i += 2 {
		if !strings.Contains(example, oldnew[i]) {
			t.Fatalf("%q is not in the example", oldnew[i])
		}
	}
	return strings.NewReplacer(oldnew...).Replace(example)
}

// TestDiffOfAFile diffs a new Configuration, applies it, and expects no differences;
// then it does the same with an edit.
func TestDiffOfAFile(t *testing.T) {
	w := newWorld(t)
	w.startController()
	before := w.run(example, "diff", "-f", "-")
	before.want(t, 1,
		"/cam-", "(SAMPLE: a sample device", "# + ConfigMap", "+  text: sampled in hall", "# + Service", "# + Secret", "+  key: '***'",
		"# Configuration "+w.Namespace+"/cam  (SAMPLE", "+  nodes: on ", "note: ", "no device has been found yet", "!error", "!R0VIRUlN",
		"!GEHEIM")
	var configuration v0.Configuration
	if err := w.Get(t.Context(), w.Key("cam"), &configuration); !apierrors.IsNotFound(err) {
		t.Fatalf("diff has created the Configuration: %v", err)
	}

	w.Apply(example)
	instance := w.Instance("cam", "cam-1", map[string]string{"TEXT": "foo", "ROOM": "hall"})
	w.waitReady("cam")
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
		"# Instance "+w.Namespace+"/cam-1\n",
		"# ~ ConfigMap "+w.Namespace+"/cam-1  changed", "(instanceBrokerResources[0])", "-  text: foo in hall", "+  text: foo in attic",
		"# ~ Service", "-  - port: 80", "+  - port: 81",
		"# ~ Secret", "-  key: '*** (before)'", "+  key: '*** (after)'",
		"# Configuration "+w.Namespace+"/cam\n", "# + ConfigMap "+w.Namespace+"/cam-group", "(configurationBrokerResources[0])",
		"# - ConfigMap "+w.Namespace+"/group  deleted: no template renders it any more",
		"!managedFields", "!SAMPLE", "!GEHEIM", "!SECRETO", "!R0VIRUlN", "!U0VDUkVUTw")
	if now := w.versions(); now != all {
		t.Errorf("diff has written:\nbefore %s\nafter  %s", all, now)
	}

	// The agent merges the new brokerProperties, the controller applies.
	w.Apply(edited)
	instance.Spec.BrokerProperties["ROOM"] = "attic"
	if err := w.Patch(t.Context(), instance, client.RawPatch(types.MergePatchType,
		[]byte(`{"spec":{"brokerProperties":{"ROOM":"attic"}}}`))); err != nil {
		t.Fatal(err)
	}
	w.Eventually("the edit is applied", func() string {
		if got := w.run("", "diff", "cam"); got.code != 0 {
			return got.out + got.err
		}
		return ""
	})
	var group corev1.ConfigMap
	if err := w.Get(t.Context(), w.Key("cam-group"), &group); err != nil {
		t.Error(err)
	}
}

// TestExternalDiff compares with other programs, as kubectl diff does.
func TestExternalDiff(t *testing.T) {
	w := newWorld(t)
	program := filepath.Join(t.TempDir(), "compare")
	script := func(text string) {
		t.Helper()
		if err := os.WriteFile(program, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("KUBECTL_EXTERNAL_DIFF", program+" -N --color=no ;rm")
	script(`echo "$# $1 $2"; ls "$3"; ls "$4"; cat "$4"/v1.ConfigMap.*.group; basename "$3" "$4"; exit 1`)
	w.run(example, "diff", "-f", "-").want(t, 1, "4 -N --color=no", "v1.ConfigMap."+w.Namespace+".cam-", "v1.Secret."+w.Namespace,
		"kind: ConfigMap", "# + ConfigMap", "!+++", "!GEHEIM", "!R0VIRUlN", "!managedFields")
	script("exit 0") // a program that finds the differences irrelevant
	w.run(example, "diff", "-f", "-").want(t, 0)
	w.run(changed(t, "port: 80", "port: 80000"), "diff", "-f", "-").want(t, 2, "# ! Service", "would be rejected")
	script("echo broken >&2; exit 3")
	w.run(example, "diff", "-f", "-").want(t, 2, "broken", "error: KUBECTL_EXTERNAL_DIFF: run ", "exit status 3")
	t.Setenv("KUBECTL_EXTERNAL_DIFF", "no-such-program")
	w.run(example, "diff", "-f", "-").want(t, 2, "error: KUBECTL_EXTERNAL_DIFF: run ", "not found")

	w.startController()
	w.Apply(changed(t, "{name: group}", "{name: group, annotations: {akri.sh/deletion-policy: orphan}}"))
	w.Instance("cam", "cam-1", map[string]string{"TEXT": "foo", "ROOM": "hall"})
	w.waitReady("cam")
	t.Setenv("KUBECTL_EXTERNAL_DIFF", program)
	script("exit 0") // the YAML of an object that is orphaned stays
	w.run(changed(t, "name: group", "name: other"), "diff", "-f", "-").want(t, 1, "# - ConfigMap "+w.Namespace+"/group  orphaned")
	w.Namespace = apitest.Namespace(t, w.Config)
	w.writeKubeconfig()

	var changes view.Preview
	got := w.run(example, "diff", "-f", "-", "-o", "json")
	if err := json.Unmarshal([]byte(got.out), &changes); err != nil || got.code != 1 || len(changes) < 2 || !changes[0].Sample ||
		changes[0].Objects[0].Verb != view.Created || changes[0].Objects[0].After["kind"] != "ConfigMap" ||
		strings.Contains(got.out, "R0VIRUlN") {
		t.Errorf("%v, got %+v", err, got)
	}
}

// versions returns the resourceVersions of the objects in the namespace.
func (w *world) versions() string {
	w.T.Helper()
	var text strings.Builder
	for _, list := range []client.ObjectList{&corev1.ConfigMapList{}, &corev1.ServiceList{}, &corev1.SecretList{},
		&v0.ConfigurationList{}, &v0.InstanceList{}} {
		if err := w.List(w.T.Context(), list, client.InNamespace(w.Namespace)); err != nil {
			w.T.Fatal(err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			object := item.(client.Object)
			text.WriteString(object.GetName() + "@" + object.GetResourceVersion() + " ")
			return nil
		})
		if err != nil {
			w.T.Fatal(err)
		}
	}
	return text.String()
}

// TestDiffOfTheCluster checks that diff by name shows what a stopped controller would
// repair.
func TestDiffOfTheCluster(t *testing.T) {
	w := newWorld(t)
	stop := w.startController()
	w.Apply(example)
	w.Instance("cam", "cam-1", map[string]string{"TEXT": "foo", "ROOM": "hall"})
	w.waitReady("cam")
	w.run("", "diff", "cam").want(t, 0, "!#")
	stop()
	service := &corev1.Service{ObjectMeta: w.Meta("cam-1-svc")}
	if err := w.Delete(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	edited := &corev1.ConfigMap{ObjectMeta: w.Meta("cam-1")}
	if err := w.Patch(t.Context(), edited, client.RawPatch(types.MergePatchType, []byte(`{"data":{"text":"bar","theirs":"x"}}`))); err != nil {
		t.Fatal(err)
	}
	w.run("", "diff", "cam").want(t, 1,
		"# ~ ConfigMap "+w.Namespace+"/cam-1  changed: a field managed by Akri was changed",
		"-  text: bar", "+  text: foo in hall", "   theirs: x",
		"# + Service "+w.Namespace+"/cam-1-svc", "!Secret")
	w.run("", "diff", "nope").want(t, 2, `error: no Configuration "nope"`)
}

// immutableTemplate is the template of an immutable ConfigMap.
const immutableTemplate = `
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: "{{INSTANCE_NAME}}-fixed"DIRECTIVES}
    immutable: true
    data: {text: old}
  configurationBrokerResources:`

// TestDiffShowsRejectedObjects checks conflicts, immutable fields and other errors of
// the API server.
func TestDiffShowsRejectedObjects(t *testing.T) {
	w := newWorld(t)
	w.startController()
	recreate := strings.Replace(immutableTemplate, "DIRECTIVES", `, annotations: {akri.sh/on-immutable: recreate}`, 1)
	fail := strings.Replace(immutableTemplate, "DIRECTIVES", "", 1)
	w.Apply(changed(t, "\n  configurationBrokerResources:", fail))
	w.Instance("cam", "cam-1", map[string]string{"TEXT": "foo", "ROOM": "hall"})
	w.waitReady("cam")
	w.Apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: theirs}")

	diffImmutable(t, w, fail, recreate)
	diffConflicts(t, w)
	diffInvalid(t, w)
}

// diffImmutable changes the object of a template that fails, and of one that is
// recreated, on an immutable field.
func diffImmutable(t *testing.T, w *world, fail, recreate string) {
	t.Helper()
	edit := func(text string) string { return strings.Replace(text, "text: old", "text: new", 1) }
	t.Run("immutable", func(t *testing.T) {
		w.run(changed(t, "\n  configurationBrokerResources:", edit(fail), "name: group", "name: other"), "diff", "-f", "-").want(t, 2,
			"# ! ConfigMap "+w.Namespace+"/cam-1-fixed  rejected: ", "field is immutable when `immutable` is set",
			"# + ConfigMap "+w.Namespace+"/other", "error: 1 of the objects would be rejected")
	})
	t.Run("recreate", func(t *testing.T) {
		w.run(changed(t, "\n  configurationBrokerResources:", edit(recreate)), "diff", "-f", "-").want(t, 1,
			"# ± ConfigMap "+w.Namespace+"/cam-1-fixed  deleted and recreated: the template changes a field that is immutable", "-  text: old",
			"+  text: new", "!x-akri-diff")
	})
	t.Run("recreate a rejected object", func(t *testing.T) {
		w.run(changed(t, "\n  configurationBrokerResources:",
			strings.Replace(edit(recreate), "data: {text: new}", "data: {no/key: new}", 1)), "diff", "-f", "-").want(t, 2,
			"# ! ConfigMap "+w.Namespace+"/cam-1-fixed  rejected: ", "no/key")
	})
}

// diffConflicts renders an object that another client has created.
func diffConflicts(t *testing.T, w *world) {
	t.Helper()
	t.Run("conflict", func(t *testing.T) {
		w.run(changed(t, "name: group", "name: theirs"), "diff", "-f", "-").want(t, 2,
			"/theirs  rejected: ConfigMap theirs exists and was not created for this Configuration",
			"# … ConfigMap "+w.Namespace+"/group  waiting: to be deleted once all of the above is applied")
	})
	t.Run("adopt", func(t *testing.T) {
		w.run(changed(t, "{name: group}", "{name: theirs, annotations: {akri.sh/on-conflict: adopt}}"), "diff", "-f", "-").want(t, 1,
			"# ~ ConfigMap "+w.Namespace+"/theirs  changed: it exists and is adopted by this Configuration", "+data:")
	})
	t.Run("skip", func(t *testing.T) {
		w.run(changed(t, "{name: group}", "{name: theirs, annotations: {akri.sh/on-conflict: skip}}"), "diff", "-f", "-").want(t, 1,
			"!theirs", "# - ConfigMap "+w.Namespace+"/group")
	})
}

// diffInvalid renders objects that the API server or the controller rejects.
func diffInvalid(t *testing.T, w *world) {
	t.Helper()
	t.Run("invalid object", func(t *testing.T) {
		w.run(changed(t, "port: 80", "port: 80000"), "diff", "-f", "-").want(t, 2, "# ! Service", "must be between 1 and 65535")
	})
	t.Run("render", func(t *testing.T) {
		w.run(changed(t, "PROPERTIES.TEXT", "PROPERTIES.ABSENT"), "diff", "-f", "-").want(t, 2,
			"# ! spec.instanceBrokerResources[0].data.text: ", `property "ABSENT" does not exist`, "!deleted")
	})
	t.Run("template", func(t *testing.T) {
		w.run(changed(t, "{{NODES}}", "{{NODE"), "diff", "-f", "-").want(t, 2, "# ! spec.configurationBrokerResources[0].data.nodes: ")
	})
	t.Run("kind", func(t *testing.T) {
		w.run(changed(t, "kind: Secret", "kind: Secrez"), "diff", "-f", "-").want(t, 2, `the API server has no kind "Secrez"`)
	})
	t.Run("confined", func(t *testing.T) {
		c := changed(t, "apiVersion: v1\n    kind: Secret", "apiVersion: scheduling.k8s.io/v1\n    kind: PriorityClass",
			"stringData: {key: GEHEIM}", "value: 7")
		w.run(c, "diff", "-f", "-").want(t, 2, "PriorityClass", "is cluster-scoped")
		w.run(c, "diff", "-f", "-", "--allow-cluster-scoped").want(t, 1, "# + PriorityClass.scheduling.k8s.io cam-1-key  created",
			"+value: 7")
	})
	t.Run("Configuration", func(t *testing.T) {
		w.run(changed(t, "{name: debugEcho}", "{name: debugEcho, nam: x}"), "diff", "-f", "-").want(t, 2,
			"the API server rejects the Configuration", `unknown field "spec.discoveryHandler.nam"`)
		w.run("kind: Service", "diff", "-f", "-").want(t, 2, "no Configuration in stdin")
		w.run(changed(t, "{name: cam}", "{name: cam, namespace: far}"), "diff", "-f", "-", "-n", w.Namespace).want(t, 2,
			`Configuration cam is in namespace "far"`)
	})
	t.Run("discovery", func(t *testing.T) {
		w.run(changed(t, "debugEcho", "udev"), "diff", "-f", "-").want(t, 1, "the discovery handler changes too")
	})
}

// TestDiffReplacesTerminatedPods checks that a terminated Pod is recreated, and the
// output shows the new one.
func TestDiffReplacesTerminatedPods(t *testing.T) {
	w := newWorld(t)
	stop := w.startController()
	w.Apply(changed(t, "kind: Service", "kind: Pod", `{ports: [{port: 80}], selector: "{{LABEL_SELECTOR}}"}`,
		"{containers: [{name: a, image: a}]}"))
	w.Instance("cam", "cam-1", map[string]string{"TEXT": "foo", "ROOM": "hall"})
	pod := &corev1.Pod{}
	w.Eventually("Pod", func() string {
		if err := w.Get(t.Context(), w.Key("cam-1-svc"), pod); err != nil {
			return err.Error()
		}
		return ""
	})
	w.Eventually("nothing to do", func() string {
		if got := w.run("", "diff", "cam"); got.code != 0 {
			return got.out + got.err
		}
		return ""
	})
	stop()
	if err := w.Status().Patch(t.Context(), pod, client.RawPatch(types.MergePatchType,
		[]byte(`{"status":{"phase":"Failed","reason":"Evicted"}}`))); err != nil {
		t.Fatal(err)
	}
	w.run("", "diff", "cam").want(t, 1, "# ± Pod "+w.Namespace+"/cam-1-svc  deleted and recreated: it has terminated: ", "Evicted",
		"(instanceBrokerResources[1])", "!x-akri-diff")
}
