package webhook

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	v0 "akri.sh/akri/api/v0"
)

// guardMetadata installs the policy for metadata and waits until it is enforced.
func (w *world) guardMetadata() {
	w.Helper()
	probe := decode(w, configuration("", ""))
	probe.SetName("probe")
	probe.SetLabels(numbered("l", v0.MaxLabels+1))
	w.enforce("policy/metadata.yaml", func() error {
		_, err := w.as("").api.Resource(v0.ConfigurationResource).Namespace(w.Namespace).
			Create(w.Context(), probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
}

// numbered returns labels whose keys begin with a prefix.
func numbered(prefix string, n int) map[string]string {
	labels := map[string]string{}
	for i := range n {
		labels[fmt.Sprintf("%s-%d", prefix, i)] = ""
	}
	return labels
}

// finalizersOf returns finalizers that begin with a prefix.
func finalizersOf(prefix string, n int) []string {
	finalizers := make([]string, n)
	for i := range finalizers {
		finalizers[i] = fmt.Sprintf("%s-%d", prefix, i)
	}
	return finalizers
}

// ownersOf returns references to owners with names of the given length.
func ownersOf(n, length int) []metav1.OwnerReference {
	owners := make([]metav1.OwnerReference, n)
	for i := range owners {
		owners[i] = metav1.OwnerReference{
			APIVersion: "v1", Kind: "ConfigMap", Name: strings.Repeat("x", length), UID: types.UID(fmt.Sprint("u-", i)),
		}
	}
	return owners
}

// patchMetadata sends a merge patch of an object's metadata.
func (w *world) patchMetadata(api dynamic.Interface, resource schema.GroupVersionResource, name string, metadata map[string]any) error {
	w.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		w.Fatal(err)
	}
	_, err = api.Resource(resource).Namespace(w.Namespace).Patch(w.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// Agents, the controller and etcd read all of it.
func TestMetadataHasBounds(t *testing.T) {
	w := newWorld(t)
	admin := w.as("")
	expect(t, admin.apply(configuration("", "")), "")
	admin.make(v0.InstanceResource, seen)
	w.guardMetadata()
	names := map[schema.GroupVersionResource]string{v0.ConfigurationResource: "cam", v0.InstanceResource: "cam-3"}
	const tooLong = v0.MaxOwnerReferenceLength + 1
	for _, tc := range []struct {
		name     string
		metadata map[string]any
		refused  string
	}{
		{"labels of tools", map[string]any{"labels": numbered("l", v0.MaxLabels-2)}, ""},
		{"too many labels", map[string]any{"labels": numbered("l", v0.MaxLabels+1)}, "metadata.labels: at most"},
		{"owners", map[string]any{"ownerReferences": ownersOf(v0.MaxOwnerReferences, v0.MaxOwnerReferenceLength)}, ""},
		{"too many owners", map[string]any{"ownerReferences": ownersOf(v0.MaxOwnerReferences+1, 1)}, "metadata.ownerReferences: at most"},
		{"an owner with a long name", map[string]any{"ownerReferences": ownersOf(1, tooLong)}, "may be longer"},
		{"finalizers", map[string]any{"finalizers": finalizersOf("example.com/f", v0.MaxFinalizers)}, ""},
		{"too many finalizers", map[string]any{"finalizers": finalizersOf("example.com/f", v0.MaxFinalizers+1)}, "metadata.finalizers: at most"},
		{"finalizers of agents of Akri", map[string]any{"finalizers": finalizersOf("node", 2*v0.MaxFinalizers)}, ""},
	} {
		for resource, name := range names {
			t.Run(tc.name+" of "+resource.Resource, func(t *testing.T) {
				expect(t, w.patchMetadata(admin.api, resource, name, tc.metadata), tc.refused)
			})
		}
	}
	// The labels of nodes are not among those of tools, except on a Configuration.
	nodes := numbered(v0.NodeLabel("worker"), 2*v0.MaxLabels)
	expect(t, w.patchMetadata(admin.api, v0.InstanceResource, "cam-3", map[string]any{"labels": nodes}), "")
	expect(t, w.patchMetadata(admin.api, v0.ConfigurationResource, "cam", map[string]any{"labels": nodes}), "metadata.labels: at most")
	tooMany := numbered("m", v0.MaxLabels+1)
	expect(t, w.patchMetadata(admin.api, v0.InstanceResource, "cam-3", map[string]any{"labels": tooMany}), "metadata.labels: at most")
	// A claim of a slot next to them.
	expect(t, w.patched(admin.api, "cam-3", `{"spec":{"deviceUsage":{"cam-3-2":"b"}}}`), "")
}

// What was stored before the policy existed does not block edits or deletion, but does not
// become more.
func TestMetadataFromBefore(t *testing.T) {
	w := newWorld(t)
	admin := w.as("")
	expect(t, admin.apply(configuration("", "")), "")
	long := ownersOf(v0.MaxOwnerReferences+4, v0.MaxOwnerReferenceLength+1)
	finalizers := finalizersOf("example.com/f", v0.MaxFinalizers+4)
	change := func(metadata map[string]any) error {
		return w.patchMetadata(admin.api, v0.ConfigurationResource, "cam", metadata)
	}
	w.Eventually("the policy of another test is no longer enforced", func() string {
		if err := change(map[string]any{
			"labels": numbered("l", v0.MaxLabels+4), "ownerReferences": long, "finalizers": finalizers,
		}); err != nil {
			return err.Error()
		}
		return ""
	})
	w.guardMetadata()
	expect(t, admin.apply(configuration("", "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}")), "")
	expect(t, change(map[string]any{"labels": map[string]any{"one-more": ""}}), "metadata.labels: at most")
	expect(t, change(map[string]any{"labels": map[string]any{"l-0": nil}}), "")
	expect(t, change(map[string]any{"labels": map[string]any{"l-1": nil, "another": ""}}), "")
	expect(t, change(map[string]any{"ownerReferences": append(ownersOf(1, 1), long...)}), "metadata.ownerReferences: at most")
	expect(t, change(map[string]any{"ownerReferences": long[1:]}), "")
	expect(t, change(map[string]any{"finalizers": append(finalizersOf("example.com/g", 1), finalizers...)}), "metadata.finalizers: at most")
	expect(t, change(map[string]any{"finalizers": finalizers[1:]}), "")
	expect(t, change(map[string]any{"finalizers": nil}), "")
}

// The label of a node makes its agent hold an Instance in memory. An agent that does not find the
// ID of its device publishes the device again, and both Instances offer all its slots. The
// controller deletes objects as the ServiceAccount that is recorded.
func TestOnlyAgentsAndPublishersChangeOurMetadata(t *testing.T) {
	w := newWorld(t)
	w.grant("tenant", rule(v0.Domain, "instances", "patch"))
	w.grant("tool", rule(v0.Domain, "instances", "patch", "publish"))
	w.grant(controllerAccount, rule(v0.Domain, "instances", "patch"))
	w.as("").make(v0.InstanceResource, strings.Replace(seen, "note: mine", "note: mine, akri.sh/service-account: deleter", 1))
	w.as("").make(v0.InstanceResource, strings.ReplaceAll(strings.Replace(seen, "akri.sh/device-id: usb-3, ", "", 1), "cam-3", "cam-4"))
	w.guardMetadata()
	const label, refused = "tenant may not add labels of nodes", "tenant may not change akri.sh/device-id and akri.sh/service-account"
	for name, tc := range map[string]struct{ instance, metadata, refused string }{
		"a node's label":                 {"cam-3", `{"labels":{"node.akri.sh/d":""}}`, label},
		"no label of a node":             {"cam-3", `{"labels":{"node.akri.sh/b":null}}`, ""},
		"a label":                        {"cam-3", `{"labels":{"mine":""}}`, ""},
		"another ID":                     {"cam-3", `{"annotations":{"akri.sh/device-id":"usb-4"}}`, refused},
		"no ID":                          {"cam-3", `{"annotations":{"akri.sh/device-id":null}}`, refused},
		"an ID where there is none":      {"cam-4", `{"annotations":{"akri.sh/device-id":"usb-4"}}`, refused},
		"another account":                {"cam-3", `{"annotations":{"akri.sh/service-account":"other"}}`, refused},
		"no account":                     {"cam-3", `{"annotations":{"akri.sh/service-account":null}}`, refused},
		"an account where there is none": {"cam-4", `{"annotations":{"akri.sh/service-account":"other"}}`, refused},
		"no annotations":                 {"cam-3", `{"annotations":null}`, refused},
		"the same again":                 {"cam-3", `{"annotations":{"akri.sh/device-id":"usb-3","mine":"x"}}`, ""},
		"annotations of tools":           {"cam-3", `{"annotations":{"note":null,"mine":"x"}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			patch := `{"metadata":` + tc.metadata + `}`
			expect(t, w.patched(w.as("tenant").api, tc.instance, patch), tc.refused)
			expect(t, w.patched(w.as("tool").api, tc.instance, patch), "")
			expect(t, w.patched(w.as(controllerAccount).api, tc.instance, patch), "")
			expect(t, w.patched(w.agent("d"), tc.instance, patch), "")
		})
	}
}
