package webhook

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/fulltest"
)

const agentAccount = "system:serviceaccount:akri-system:akri-agent"

// agent returns a client of an agent's Pod on a node, or, without a node, of an
// agent outside the cluster.
func (w *world) agent(node string) dynamic.Interface {
	w.Helper()
	config := rest.CopyConfig(w.Config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: agentAccount,
		Groups:   []string{"system:masters"}, // this is not about RBAC
	}
	if node != "" {
		config.Impersonate.Extra = map[string][]string{"authentication.kubernetes.io/node-name": {node}}
	}
	api, err := dynamic.NewForConfig(config)
	if err != nil {
		w.Fatal(err)
	}
	return api
}

// instances returns the Instances of the namespace for a client.
func (w *world) instances(api dynamic.Interface) dynamic.ResourceInterface {
	return api.Resource(v0.InstanceResource).Namespace(w.Namespace)
}

// patched returns the error of a dry run of a merge patch of an Instance.
func (w *world) patched(api dynamic.Interface, name, patch string) error {
	_, err := w.instances(api).Patch(w.Context(), name, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// guardAgents installs the policy for agents and waits until it is enforced.
func (w *world) guardAgents() {
	w.Helper()
	probe := decode(w, `{apiVersion: akri.sh/v0, kind: Instance, metadata: {name: probe-1}, spec: `+
		`{configurationName: probe, cdiName: akri.sh/probe=1, capacity: 1, nodes: [b]}}`)
	w.enforce("policy/agents.yaml", func() error {
		_, err := w.instances(w.agent("a")).Create(w.Context(), probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
}

// seen is an Instance of a shared device on nodes b and c, whose author is b.
const seen = `{apiVersion: akri.sh/v0, kind: Instance, metadata: {name: cam-3, labels: {seen: "1", akri.sh/configuration: cam, ` +
	`node.akri.sh/b: "", node.akri.sh/c: ""}, annotations: {akri.sh/device-id: usb-3, note: mine}, ownerReferences: [{apiVersion: ` +
	`akri.sh/v0, kind: Configuration, name: cam, uid: u-1, controller: true, blockOwnerDeletion: false}]}, spec: {configurationName: ` +
	`cam, cdiName: akri.sh/cam=3, capacity: 4, shared: true, brokerProperties: {K: v}, nodes: [b, c], deviceUsage: {cam-3-0: b, ` +
	`cam-3-1: "C:cam-0:b", cam-3-2: "", cam-3-3: c}}}`

// A compromised agent can only harm the entries of its own node.
func TestAgentsWriteForTheirOwnNode(t *testing.T) {
	w := newWorld(t)
	w.guardAgents()
	admin := w.as("")
	admin.make(v0.InstanceResource, seen)
	admin.make(v0.InstanceResource, `{apiVersion: akri.sh/v0, kind: Instance, metadata: {name: cam-4}, spec: `+
		`{configurationName: cam, cdiName: akri.sh/cam=4, capacity: 4, nodes: [b]}}`)
	const owner = `{"apiVersion":"akri.sh/v0","kind":"Configuration","name":"cam","uid":"u-1","controller":true,"blockOwnerDeletion":false}`
	const second = `{"apiVersion":"akri.sh/v0","kind":"Configuration","name":"cam","uid":"u-2"}`
	for name, tc := range map[string]struct {
		node, patch string
		refused     string // empty: allowed
	}{
		"joins":                          {"a", `{"spec":{"nodes":["b","c","a"]},"metadata":{"labels":{"node.akri.sh/a":""}}}`, ""},
		"joins as the author":            {"a", `{"spec":{"nodes":["a","b","c"]}}`, "at the end"},
		"joins in the middle":            {"a", `{"spec":{"nodes":["b","a","c"]}}`, "at the end"},
		"leaves":                         {"b", `{"spec":{"nodes":["c"]},"metadata":{"labels":{"node.akri.sh/b":null}}}`, ""},
		"leaves, and is not the author":  {"c", `{"spec":{"nodes":["b"]}}`, ""},
		"becomes the author":             {"c", `{"spec":{"nodes":["c","b"]}}`, "at the end"},
		"gives the authorship away":      {"b", `{"spec":{"nodes":["c","b"]}}`, ""},
		"removes another":                {"b", `{"spec":{"nodes":["b"]}}`, "own node"},
		"removes the author":             {"c", `{"spec":{"nodes":["c"]}}`, "own node"},
		"adds another":                   {"b", `{"spec":{"nodes":["b","c","d"]}}`, "own node"},
		"takes a free slot":              {"b", `{"spec":{"deviceUsage":{"cam-3-2":"b"}}}`, ""},
		"takes it through the group":     {"b", `{"spec":{"deviceUsage":{"cam-3-2":"C:cam-1:b"}}}`, ""},
		"frees its slots":                {"b", `{"spec":{"deviceUsage":{"cam-3-0":"","cam-3-1":""}}}`, ""},
		"removes its slots":              {"b", `{"spec":{"deviceUsage":{"cam-3-0":null,"cam-3-1":null}}}`, ""},
		"frees another's slot":           {"b", `{"spec":{"deviceUsage":{"cam-3-3":""}}}`, "own node"},
		"removes another's slot":         {"b", `{"spec":{"deviceUsage":{"cam-3-3":null}}}`, "own node"},
		"takes a slot for another":       {"b", `{"spec":{"deviceUsage":{"cam-3-2":"c"}}}`, "own node"},
		"a name that ends like its":      {"b", `{"spec":{"deviceUsage":{"cam-3-2":"xb"}}}`, "own node"},
		"adds something else":            {"b", `{"spec":{"deviceUsage":{"junk":"b"}}}`, "own node"},
		"changes what it cannot see":     {"a", `{"spec":{"brokerProperties":{"K":"evil"}}}`, "that its node sees"},
		"the author's properties":        {"b", `{"spec":{"brokerProperties":{"K":"w"}}}`, ""},
		"another's properties":           {"c", `{"spec":{"brokerProperties":{"K":"evil"}}}`, "the first"},
		"removes all properties":         {"c", `{"spec":{"brokerProperties":null}}`, "the first"},
		"joins and changes it":           {"a", `{"spec":{"nodes":["b","c","a"],"brokerProperties":{"L":"evil"}}}`, "the first"},
		"leaves and changes it":          {"c", `{"spec":{"nodes":["b"],"brokerProperties":{"L":"evil"}}}`, "the first"},
		"the author's capacity":          {"b", `{"spec":{"capacity":5}}`, ""},
		"another's capacity":             {"c", `{"spec":{"capacity":5}}`, "the first"},
		"whether others can see it":      {"c", `{"spec":{"shared":false}}`, "the first"},
		"the CDI name":                   {"c", `{"spec":{"cdiName":"akri.sh/cam=5"}}`, "the first"},
		"the Configuration":              {"b", `{"spec":{"configurationName":"other"}}`, "never changes"},
		"removes another's label":        {"b", `{"metadata":{"labels":{"node.akri.sh/c":null}}}`, "label of its own node"},
		"writes another's label":         {"b", `{"metadata":{"labels":{"node.akri.sh/d":""}}}`, "label of its own node"},
		"changes another label":          {"b", `{"metadata":{"labels":{"seen":"2"}}}`, "label of its own node"},
		"another Configuration's label":  {"b", `{"metadata":{"labels":{"akri.sh/configuration":"other"}}}`, "label of its own node"},
		"the device ID":                  {"b", `{"metadata":{"annotations":{"akri.sh/device-id":"usb-4"}}}`, "only the device ID"},
		"another annotation":             {"b", `{"metadata":{"annotations":{"note":"evil"}}}`, "only the device ID"},
		"removes an annotation":          {"b", `{"metadata":{"annotations":{"note":null}}}`, "only the device ID"},
		"the former device files":        {"b", `{"metadata":{"annotations":{"akri.sh/former-device-paths":"x"}}}`, ""},
		"another's former device files":  {"c", `{"metadata":{"annotations":{"akri.sh/former-device-paths":"x"}}}`, "if it is the first"},
		"keeps its label when it leaves": {"b", `{"spec":{"nodes":["c"]}}`, ""},
		"labels what it does not see":    {"a", `{"metadata":{"labels":{"node.akri.sh/a":""}}}`, "that its node sees"},
		"claims what it does not see":    {"a", `{"spec":{"deviceUsage":{"cam-3-2":"a"}}}`, "that its node sees"},
		"a finalizer":                    {"b", `{"metadata":{"finalizers":["akri.sh/cleanup"]}}`, "metadata.finalizers"},
		"removes the owner":              {"c", `{"metadata":{"ownerReferences":[]}}`, "metadata.ownerReferences"},
		"the author adds an owner":       {"b", `{"metadata":{"ownerReferences":[` + owner + `,` + second + `]}}`, ""},
		"another adds an owner":          {"c", `{"metadata":{"ownerReferences":[` + owner + `,` + second + `]}}`, "metadata.ownerReferences"},
		"an owner of another kind": {"b", `{"metadata":{"ownerReferences":[` + owner + `,{"apiVersion":"v1","kind":"ConfigMap","name":"cam",` +
			`"uid":"u-3"}]}}`, "metadata.ownerReferences"},
	} {
		t.Run(name, func(t *testing.T) { expect(t, w.patched(w.agent(tc.node), "cam-3", tc.patch), tc.refused) })
	}
	admin.make(v0.InstanceResource, `{apiVersion: akri.sh/v0, kind: Instance, metadata: {name: cam-5, labels: {node.akri.sh/b: ""}}, spec: `+
		`{configurationName: cam, cdiName: akri.sh/cam=5, capacity: 4, shared: true, nodes: [c], deviceUsage: {cam-5-0: b, cam-5-1: ""}}}`)
	for name, tc := range map[string]struct{ patch, refused string }{
		"frees its last slot":               {`{"spec":{"deviceUsage":{"cam-5-0":""}}}`, ""},
		"records what its containers have":  {`{"spec":{"deviceUsage":{"cam-5-1":"b"}}}`, ""},
		"leaves the selection":              {`{"metadata":{"labels":{"node.akri.sh/b":null}}}`, ""},
		"joins again":                       {`{"spec":{"nodes":["c","b"]}}`, ""},
		"describes what it no longer sees":  {`{"spec":{"capacity":5}}`, "the first"},
		"removes the node that sees it":     {`{"spec":{"nodes":[]}}`, "own node"},
		"removes that node's label as well": {`{"metadata":{"labels":{"node.akri.sh/c":""}}}`, "label of its own node"},
	} {
		t.Run("a node that has left "+name, func(t *testing.T) { expect(t, w.patched(w.agent("b"), "cam-5", tc.patch), tc.refused) })
	}
	// Garbage collection deletes an Instance whose only owner does not exist.
	admin.make(v0.InstanceResource, `{apiVersion: akri.sh/v0, kind: Instance, metadata: {name: cam-9}, spec: `+
		`{configurationName: cam, cdiName: akri.sh/cam=9, capacity: 4, shared: true, nodes: [b, c]}}`)
	expect(t, w.patched(w.agent("b"), "cam-9", `{"metadata":{"ownerReferences":[`+owner+`]}}`), "")
	expect(t, w.patched(w.agent("c"), "cam-9", `{"metadata":{"labels":{"akri.sh/configuration":"cam","node.akri.sh/c":""}}}`), "") // restored
	expect(t, w.patched(w.agent("c"), "cam-9", `{"metadata":{"ownerReferences":[`+owner+`]}}`), "metadata.ownerReferences")
	expect(t, w.patched(w.agent("a"), "cam-9", `{"spec":{"nodes":["b","c","a"]},"metadata":{"ownerReferences":[`+second+`]}}`),
		"metadata.ownerReferences")
	// The controller's finalizer, and one of another controller, are there for a reason.
	admin.make(v0.InstanceResource, `{apiVersion: akri.sh/v0, kind: Instance, metadata: {name: cam-6, finalizers: [akri.sh/cleanup, `+
		`x.io/f]}, spec: {configurationName: cam, cdiName: akri.sh/cam=6, capacity: 4, shared: true, nodes: [b, c]}}`)
	for what, patch := range map[string]string{
		"all": `{"metadata":{"finalizers":null}}`, "one": `{"metadata":{"finalizers":["x.io/f"]}}`,
		"one for another": `{"metadata":{"finalizers":["akri.sh/cleanup","y.io/f"]}}`,
	} {
		t.Run("removes finalizers: "+what, func(t *testing.T) {
			expect(t, w.patched(w.agent("b"), "cam-6", patch), "metadata.finalizers")
			expect(t, w.patched(w.agent("c"), "cam-6", patch), "metadata.finalizers")
		})
	}
	expect(t, w.patched(w.agent("b"), "cam-6", `{"spec":{"brokerProperties":{"K":"v"}}}`), "") // they stay
	expect(t, w.patched(w.agent("a"), "cam-4", `{"spec":{"nodes":["b","a"]}}`), "local to another node")
	expect(t, w.patched(w.agent("b"), "cam-4", `{"spec":{"brokerProperties":{"K":"v"}}}`), "")
}

func TestAgentsCreateAndDeleteForTheirOwnNode(t *testing.T) {
	w := newWorld(t)
	w.guardAgents()
	w.as("").make(v0.InstanceResource, seen)
	instance := func(metadata, spec string) *unstructured.Unstructured {
		return decode(t, `{apiVersion: akri.sh/v0, kind: Instance, metadata: {name: cam-1, `+metadata+`}, spec: `+
			`{configurationName: cam, cdiName: akri.sh/cam=1, capacity: 4, `+spec+`}}`)
	}
	for name, tc := range map[string]struct {
		metadata, spec, refused string
	}{
		"an agent's": {`labels: {akri.sh/configuration: cam, node.akri.sh/a: ""}, annotations: {akri.sh/device-id: x}, ownerReferences: ` +
			`[{apiVersion: akri.sh/v0, kind: Configuration, name: cam, uid: u-1}]`, `nodes: [a], deviceUsage: {cam-1-0: "", cam-1-1: a}`, ""},
		"another node":         {``, `nodes: [a, b]`, "own node"},
		"another node's slot":  {``, `nodes: [a], deviceUsage: {cam-1-0: b}`, "own node"},
		"another node's label": {`labels: {node.akri.sh/b: ""}`, `nodes: [a]`, "label of its own node"},
		"a label of its own":   {`labels: {x: "1"}`, `nodes: [a]`, "label of its own node"},
		"another annotation":   {`annotations: {x: "1"}`, `nodes: [a]`, "only the device ID"},
		"a finalizer":          {`finalizers: [akri.sh/cleanup]`, `nodes: [a]`, "metadata.finalizers"},
		"another Configuration": {`ownerReferences: [{apiVersion: akri.sh/v0, kind: Configuration, name: d, uid: u}]`, `nodes: [a]`,
			"metadata.ownerReferences"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.instances(w.agent("a")).Create(t.Context(), instance(tc.metadata, tc.spec),
				metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			expect(t, err, tc.refused)
		})
	}
	if _, err := w.instances(w.agent("a")).Create(t.Context(), instance(``, `nodes: [a]`), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	outside := decode(t, strings.ReplaceAll(seen, "cam-3", "cam-2"))
	if _, err := w.instances(w.agent("")).Create(t.Context(), outside, metav1.CreateOptions{}); err != nil {
		t.Errorf("an agent outside the cluster was denied: %v", err)
	}
	remove := func(node, name string) error {
		return w.instances(w.agent(node)).Delete(t.Context(), name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
	}
	used := func(name, nodes, usage string) {
		w.as("").make(v0.InstanceResource, `{apiVersion: akri.sh/v0, kind: Instance, metadata: {name: `+name+`}, spec: {configurationName: cam, `+
			`cdiName: akri.sh/cam=1, capacity: 4, shared: true, nodes: [`+nodes+`], deviceUsage: {`+usage+`}}}`)
	}
	used("cam-6", "b", `cam-6-0: c`)
	used("cam-7", "", `cam-7-0: b, cam-7-1: "C:0:c"`)
	used("cam-8", "b", `cam-8-0: b, cam-8-1: "C:0:b", cam-8-2: "", junk: c`)
	expect(t, remove("b", "cam-3"), "another node sees")
	expect(t, remove("b", "cam-6"), "containers of another node")
	expect(t, remove("b", "cam-7"), "containers of another node")
	expect(t, remove("b", "cam-8"), "")
	expect(t, remove("a", "cam-1"), "")
	expect(t, remove("b", "cam-1"), "another node sees")
}

func TestAgentsReportForTheirOwnNode(t *testing.T) {
	w := newWorld(t)
	if err := w.as("").apply(configuration("", "")); err != nil {
		t.Fatal(err)
	}
	apply := func(api dynamic.Interface, manager, status string) error {
		object := decode(t, `{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: cam}, status: `+status+`}`)
		_, err := api.Resource(v0.ConfigurationResource).Namespace(w.Namespace).
			ApplyStatus(t.Context(), "cam", object, metav1.ApplyOptions{FieldManager: manager, Force: true})
		return err
	}
	tries := 0
	w.enforce("policy/agents.yaml", func() error {
		tries++ // an unchanged status is no change
		return apply(w.agent("a"), "probe", fmt.Sprintf(`{discoveryFailures: [{node: z, handler: h, message: m%d}]}`, tries))
	})
	expect(t, apply(w.agent(""), "probe", `{discoveryFailures: []}`), "") // as an agent clears its entries
	expect(t, apply(w.agent("a"), "agent.a", `{discoveryFailures: [{node: a, handler: h, message: m}]}`), "")
	expect(t, apply(w.agent("b"), "agent.b", `{discoveryFailures: [{node: b, handler: h, message: m}]}`), "")
	expect(t, apply(w.agent("b"), "agent.b", `{discoveryFailures: [{node: b, handler: h, message: other}]}`), "")
	expect(t, apply(w.agent("b"), "agent.b", `{discoveryFailures: [{node: a, handler: h, message: other}]}`), "own node")
	entries := func(count int) string {
		var list []string
		for i := range count {
			list = append(list, fmt.Sprintf("{node: b, handler: h%d, message: m}", i))
		}
		return "{discoveryFailures: [" + strings.Join(list, ", ") + "]}"
	}
	expect(t, apply(w.agent("b"), "agent.b", entries(v0.MaxNodeFailures)), "")
	expect(t, apply(w.agent("b"), "agent.b", entries(v0.MaxNodeFailures+1)), "at most 10")
	expect(t, apply(w.agent("b"), "agent.b", `{instances: 7}`), "discoveryFailures only")
	expect(t, apply(w.agent("b"), "agent.b", `{conditions: [{type: Ready, status: "True", reason: Ready, message: "", `+
		`lastTransitionTime: "2026-01-01T00:00:00Z"}]}`), "discoveryFailures only")
	expect(t, apply(w.agent("b"), "agent.b", `{}`), "")
}

// Policies have a cost limit. The agents of a large cluster stay within it.
func TestAgentsOfALargeCluster(t *testing.T) {
	fulltest.Only(t)
	w := newWorld(t)
	const many, name = v0.MaxNodes - 1, "a-configuration-with-a-long-name-00aa00"
	node := func(i int) string { return fmt.Sprintf("worker-%04d.a-region.a-company.example", i) }
	var nodes, labels, failures, slots []string
	for i := range many {
		nodes, labels = append(nodes, node(i)), append(labels, v0.NodeLabel(node(i))+`: ""`)
		if i < v0.MaxDiscoveryFailures {
			failures = append(failures, fmt.Sprintf("{node: %s, handler: h, message: %s}", node(i), strings.Repeat("m", 100)))
		}
		if i < v0.MaxSlots {
			slots = append(slots, fmt.Sprintf("%s-%d: %s", name, i, node(i)))
		}
	}
	admin := w.as("")
	admin.make(v0.InstanceResource, `{apiVersion: akri.sh/v0, kind: Instance, metadata: {name: `+name+`, labels: {`+
		strings.Join(labels, ", ")+`}}, spec: {configurationName: a-configuration-with-a-long-name, cdiName: akri.sh/cam=1, `+
		`capacity: 1000, shared: true, nodes: [`+strings.Join(nodes, ", ")+`], deviceUsage: {`+strings.Join(slots[1:], ", ")+`}}}`)
	expect(t, admin.apply(configuration("", "")), "")
	status := func(api dynamic.Interface, manager, entries string) error {
		object := decode(t, `{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: cam}, status: {discoveryFailures: [`+entries+`]}}`)
		_, err := api.Resource(v0.ConfigurationResource).Namespace(w.Namespace).
			ApplyStatus(t.Context(), "cam", object, metav1.ApplyOptions{FieldManager: manager, Force: true})
		return err
	}
	expect(t, status(admin.api, "all", strings.Join(failures[1:], ", ")), "")

	newcomer, first, last := w.agent("newcomer"), w.agent(node(0)), w.agent(node(many-1))
	w.guardAgents()
	w.guardMetadata()
	for _, step := range []struct {
		what    string
		api     dynamic.Interface
		patch   string
		refused string
	}{
		{"claim", first, `[{"op":"add","path":"/spec/deviceUsage/` + name + `-0","value":"` + node(0) + `"}]`, ""},
		{"release", first, `[{"op":"replace","path":"/spec/deviceUsage/` + name + `-0","value":""}]`, ""},
		{"description", first, `[{"op":"add","path":"/spec/brokerProperties","value":{"K":"v"}}]`, ""},
		{"description by another", last, `[{"op":"add","path":"/spec/brokerProperties","value":{"K":"w"}}]`, "the first"},
		{"join", newcomer, `[{"op":"add","path":"/spec/nodes/-","value":"newcomer"},` +
			`{"op":"add","path":"/metadata/labels/node.akri.sh~1newcomer","value":""}]`, ""},
		{"departure of the last", newcomer, `[{"op":"remove","path":"/spec/nodes/` + fmt.Sprint(many) + `"},` +
			`{"op":"remove","path":"/metadata/labels/node.akri.sh~1newcomer"}]`, ""},
		{"another order", last, `[{"op":"move","from":"/spec/nodes/` + fmt.Sprint(many-1) + `","path":"/spec/nodes/0"}]`, "at the end"},
		{"departure of the first", first, `[{"op":"remove","path":"/spec/nodes/0"},` +
			`{"op":"remove","path":"` + "/metadata/labels/node.akri.sh~1" + node(0) + `"}]`, ""},
	} {
		began := time.Now()
		_, err := w.instances(step.api).Patch(t.Context(), name, types.JSONPatchType, []byte(step.patch), metav1.PatchOptions{})
		t.Logf("%s: %s", step.what, time.Since(began).Round(time.Millisecond))
		expect(t, err, step.refused)
	}
	err := w.instances(last).Delete(t.Context(), name, metav1.DeleteOptions{})
	expect(t, err, "another node sees")
	expect(t, status(first, "first", failures[0]), "")
	expect(t, status(first, "first", ""), "")
	expect(t, status(first, "first", "{node: "+node(1)+", handler: h, message: other}"), "own node")
}
