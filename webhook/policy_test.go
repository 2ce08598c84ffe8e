package webhook

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	v0 "akri.sh/akri/api/v0"
)

// manifest returns the objects in a file of config/.
func (w *world) manifest(file string) []*unstructured.Unstructured {
	w.Helper()
	text, err := os.ReadFile(filepath.Join("..", "config", file))
	if err != nil {
		w.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		objects = append(objects, decode(w, document))
	}
	return objects
}

// install applies a manifest of config/, and deletes it after the test.
func (w *world) install(file string, change func(*unstructured.Unstructured)) {
	w.Helper()
	api, err := dynamic.NewForConfig(w.config)
	if err != nil {
		w.Fatal(err)
	}
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "akri-system"}}
	if _, err := w.kubernetes().CoreV1().Namespaces().Create(w.Context(), system, metav1.CreateOptions{}); err != nil &&
		!apierrors.IsAlreadyExists(err) {
		w.Fatal(err)
	}
	for _, object := range w.manifest(file) {
		if change != nil {
			change(object)
		}
		mapping, err := w.options.Mapper.RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version)
		if err != nil {
			w.Fatal(err)
		}
		resource := api.Resource(mapping.Resource).Namespace(object.GetNamespace())
		if _, err := resource.Apply(w.Context(), object.GetName(), object, metav1.ApplyOptions{FieldManager: "test", Force: true}); err != nil {
			w.Fatalf("%s: %v", file, err)
		}
		w.Cleanup(func() {
			if err := resource.Delete(background, object.GetName(), metav1.DeleteOptions{}); err != nil {
				w.Error(err)
			}
		})
	}
}

// agent returns a client of an agent's Pod on a node, or, without a node, of an
// agent outside the cluster.
func (w *world) agent(node string) dynamic.Interface {
	w.Helper()
	config := rest.CopyConfig(w.config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:akri-system:akri-agent",
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

// The policy for authors checks every kind that the controller may create by
// default.
func TestThePolicyChecksTheUsualKinds(t *testing.T) {
	w := &world{TB: t}
	text := fmt.Sprint(w.manifest("policy/authors.yaml")[0].Object)
	for _, object := range w.manifest("rbac/controller.yaml") {
		if object.GetName() != "akri-controller-workloads" {
			continue
		}
		for _, rule := range object.Object["rules"].([]any) {
			rule := rule.(map[string]any)
			for _, resource := range rule["resources"].([]any) {
				check := fmt.Sprintf("authorizer.group('%s').resource('%s').namespace(request.namespace).check('create')",
					rule["apiGroups"].([]any)[0], resource)
				if !strings.Contains(text, check) {
					t.Errorf("the controller may create %s, but the policy does not check it: %s", resource, check)
				}
			}
		}
		return
	}
	t.Error("config/rbac has no rules")
}

// A compromised agent can only harm the entries of its own node.
func TestAgentsWriteForTheirOwnNode(t *testing.T) {
	w := enter(t)
	w.install("policy/agents.yaml", nil)
	admin := w.agent("")
	instance := func(name, nodes, usage string) *unstructured.Unstructured {
		return decode(t, `{apiVersion: akri.sh/v0, kind: Instance, metadata: {name: `+name+`, labels: {seen: "1"}}, spec: `+
			`{configurationName: cam, cdiName: akri.sh/cam=1, capacity: 4, nodes: `+nodes+`, deviceUsage: `+usage+`}}`)
	}
	at := func(api dynamic.Interface) dynamic.ResourceInterface {
		return api.Resource(v0.InstanceResource).Namespace(w.namespace)
	}
	// The API server takes a while to enforce a policy.
	w.eventually("the policy is enforced", func() string {
		if _, err := at(w.agent("a")).Create(t.Context(), instance("probe", "[b]", "{}"),
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err == nil {
			return "an agent may write another node's entry"
		}
		return ""
	})

	if _, err := at(w.agent("a")).Create(t.Context(), instance("cam-1", "[a]", `{cam-1-0: "", cam-1-1: a}`),
		metav1.CreateOptions{}); err != nil {
		t.Fatalf("an agent cannot publish: %v", err)
	}
	if _, err := at(w.agent("")).Create(t.Context(), instance("cam-2", "[p, q]", `{}`), metav1.CreateOptions{}); err != nil {
		t.Fatalf("an agent outside the cluster was denied: %v", err)
	}
	if _, err := at(admin).Create(t.Context(), instance("cam-3", "[b, c]", `{cam-3-0: b, cam-3-1: "C:cam-0:b", cam-3-2: "", cam-3-3: c}`),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	patch := func(api dynamic.Interface, name, patch string) error {
		_, err := at(api).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	for name, tc := range map[string]struct {
		node, instance, patch string
		refused               string // empty: allowed
	}{
		"joins":                        {"a", "cam-3", `{"spec":{"nodes":["b","c","a"]}}`, ""},
		"leaves":                       {"b", "cam-3", `{"spec":{"nodes":["c"]}}`, ""},
		"removes another":              {"b", "cam-3", `{"spec":{"nodes":["b"]}}`, "own node"},
		"adds another":                 {"b", "cam-3", `{"spec":{"nodes":["b","c","d"]}}`, "own node"},
		"takes a free slot":            {"b", "cam-3", `{"spec":{"deviceUsage":{"cam-3-2":"b"}}}`, ""},
		"takes it through the group":   {"b", "cam-3", `{"spec":{"deviceUsage":{"cam-3-2":"C:cam-1:b"}}}`, ""},
		"frees its slots":              {"b", "cam-3", `{"spec":{"deviceUsage":{"cam-3-0":"","cam-3-1":""}}}`, ""},
		"frees another's slot":         {"b", "cam-3", `{"spec":{"deviceUsage":{"cam-3-3":""}}}`, "own node"},
		"removes another's slot":       {"b", "cam-3", `{"spec":{"deviceUsage":{"cam-3-3":null}}}`, "own node"},
		"takes a slot for another":     {"b", "cam-3", `{"spec":{"deviceUsage":{"cam-3-2":"c"}}}`, "own node"},
		"a name that ends like its":    {"b", "cam-3", `{"spec":{"deviceUsage":{"cam-3-2":"xb"}}}`, "own node"},
		"changes what it does not see": {"a", "cam-3", `{"spec":{"brokerProperties":{"IMAGE":"evil"}}}`, "that its node sees"},
		"changes what it sees":         {"b", "cam-3", `{"spec":{"brokerProperties":{"K":"v"}}}`, ""},
	} {
		t.Run(name, func(t *testing.T) { expect(t, patch(w.agent(tc.node), tc.instance, tc.patch), tc.refused) })
	}
	remove := func(node, name string) error {
		return at(w.agent(node)).Delete(t.Context(), name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
	}
	expect(t, remove("b", "cam-3"), "another node sees")
	expect(t, remove("a", "cam-1"), "")
	expect(t, remove("b", "cam-1"), "another node sees")
}

func TestAgentsReportForTheirOwnNode(t *testing.T) {
	w := enter(t)
	w.install("policy/agents.yaml", nil)
	if err := w.as("").apply(configuration("", "")); err != nil {
		t.Fatal(err)
	}
	apply := func(api dynamic.Interface, manager, status string) error {
		object := decode(t, `{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: cam}, status: `+status+`}`)
		_, err := api.Resource(v0.ConfigurationResource).Namespace(w.namespace).
			ApplyStatus(t.Context(), "cam", object, metav1.ApplyOptions{FieldManager: manager, Force: true})
		return err
	}
	tries := 0
	w.eventually("the policy is enforced", func() string {
		tries++ // an unchanged status is no change
		if apply(w.agent("a"), "probe", fmt.Sprintf(`{discoveryFailures: [{node: z, handler: h, message: m%d}]}`, tries)) == nil {
			return "an agent may report for another node"
		}
		return ""
	})
	expect(t, apply(w.agent(""), "probe", `{}`), "")
	expect(t, apply(w.agent("a"), "agent.a", `{discoveryFailures: [{node: a, handler: h, message: m}]}`), "")
	expect(t, apply(w.agent("b"), "agent.b", `{discoveryFailures: [{node: b, handler: h, message: m}]}`), "")
	expect(t, apply(w.agent("b"), "agent.b", `{discoveryFailures: [{node: b, handler: h, message: other}]}`), "")
	expect(t, apply(w.agent("b"), "agent.b", `{discoveryFailures: [{node: a, handler: h, message: other}]}`), "own node")
	expect(t, apply(w.agent("b"), "agent.b", `{instances: 7}`), "discoveryFailures only")
	expect(t, apply(w.agent("b"), "agent.b", `{conditions: [{type: Ready, status: "True", reason: Ready, message: "", `+
		`lastTransitionTime: "2026-01-01T00:00:00Z"}]}`), "discoveryFailures only")
	expect(t, apply(w.agent("b"), "agent.b", `{}`), "")
}

// Policies have a cost limit. The agents of a large cluster stay within it.
func TestAgentsOfALargeCluster(t *testing.T) {
	w := enter(t)
	w.install("policy/agents.yaml", nil)
	const many = 2000
	node := func(i int) string { return fmt.Sprintf("worker-%04d.a-region.a-company.example", i) }
	var nodes, failures, slots []string
	for i := range many {
		nodes = append(nodes, node(i))
		failures = append(failures, fmt.Sprintf("{node: %s, handler: h, message: %s}", node(i), strings.Repeat("m", 100)))
		if i < 1000 {
			slots = append(slots, fmt.Sprintf("a-configuration-with-a-long-name-00aa00-%d: %s", i, node(i)))
		}
	}
	admin := w.as("")
	admin.make(v0.InstanceResource, `{apiVersion: akri.sh/v0, kind: Instance, metadata: {name: cam-1}, spec: {configurationName: cam, `+
		`cdiName: akri.sh/cam=1, capacity: 1000, nodes: [`+
		strings.Join(nodes, ", ")+`], deviceUsage: {`+strings.Join(slots[1:], ", ")+`}}}`)
	expect(t, admin.apply(configuration("", "")), "")
	status := func(api dynamic.Interface, manager, entries string) error {
		object := decode(t, `{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: cam}, status: {discoveryFailures: [`+entries+`]}}`)
		_, err := api.Resource(v0.ConfigurationResource).Namespace(w.namespace).
			ApplyStatus(t.Context(), "cam", object, metav1.ApplyOptions{FieldManager: manager, Force: true})
		return err
	}
	expect(t, status(admin.api, "all", strings.Join(failures[1:], ", ")), "")

	newcomer, resident := w.agent("newcomer"), w.agent(node(0))
	join := decode(t, `{apiVersion: akri.sh/v0, kind: Instance, metadata: {name: cam-1}, spec: {configurationName: cam, cdiName: `+
		`akri.sh/cam=1, capacity: 1000, nodes: [newcomer]}}`)
	claim := []byte(`{"spec":{"deviceUsage":{"a-configuration-with-a-long-name-00aa00-0":"` + node(0) + `"}}}`)
	instances := func(api dynamic.Interface) dynamic.ResourceInterface {
		return api.Resource(v0.InstanceResource).Namespace(w.namespace)
	}
	tries := 0
	w.eventually("the policy is enforced", func() string {
		tries++
		patch := fmt.Sprintf(`{"spec":{"brokerProperties":{"K":"%d"}}}`, tries)
		if _, err := instances(w.agent("stranger")).Patch(t.Context(), "cam-1", types.MergePatchType, []byte(patch),
			metav1.PatchOptions{}); err == nil {
			return "a stranger may write"
		}
		return ""
	})
	_, err := instances(resident).Patch(t.Context(), "cam-1", types.MergePatchType, claim, metav1.PatchOptions{})
	expect(t, err, "")
	_, err = instances(newcomer).Apply(t.Context(), "cam-1", join, metav1.ApplyOptions{FieldManager: "newcomer"})
	expect(t, err, "")
	expect(t, status(resident, "resident", failures[0]), "")
	expect(t, status(resident, "resident", ""), "")
	expect(t, status(resident, "resident", "{node: "+node(1)+", handler: h, message: other}"), "own node")
}

// expect fails the test unless err contains words or, without words, is nil.
func expect(t testing.TB, err error, words string) {
	t.Helper()
	switch {
	case words == "" && err != nil:
		t.Errorf("denied: %v", err)
	case words != "" && err == nil:
		t.Errorf("allowed, want a denial with %q", words)
	case words != "" && !strings.Contains(err.Error(), words):
		t.Errorf("denied with %v, want %q in it", err, words)
	}
}

// patience is how long a test waits for something that must happen. It limits
// failures only: no test passes because of it.
const patience = 20 * time.Second

// eventually waits until check returns "", and fails with what it returned last.
func (w *world) eventually(what string, check func() string) {
	w.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		complaint := check()
		if complaint == "" {
			return
		}
		if time.Now().After(deadline) {
			w.Fatalf("%s: still not after %v: %s", what, patience, complaint)
		}
	}
}
