package install

import (
	"bytes"
	"context"
	"maps"
	"strings"
	"testing"

	"akri.sh/akri/charts/helm"
	"akri.sh/akri/e2e/akri"
	"akri.sh/akri/kubebox/clustertest"
)

// component is a workload of the chart with the key of its values.
type component struct {
	workload string // KIND/NAME
	name     string // the Pods' label app.kubernetes.io/name
	values   []string
}

// components are rolled one by one.
var components = []component{
	{"deployment/akri-controller", "akri-controller", []string{"controller"}},
	{"deployment/akri-webhook", "akri-webhook", []string{"webhook"}},
	{"daemonset/akri-agent", "akri-agent", []string{"agent"}},
	{"daemonset/akri-debug-echo-discovery", "akri-debug-echo-discovery", []string{"handlers", "debugEcho"}},
}

// baseValues returns the values with which the test installs the chart.
func baseValues() helm.Values {
	otherNamespaces := helm.Values{"args": []any{"--allow-other-namespaces"}}
	return helm.Values{
		"image":      helm.Values{"tag": "dev"},
		"controller": maps.Clone(otherNamespaces),
		"webhook":    otherNamespaces,
		"handlers":   helm.Values{"debugEcho": helm.Values{"enabled": true}},
	}
}

// set sets a value and returns all values.
func set(values helm.Values, value any, keys ...string) helm.Values {
	at := values
	for _, key := range keys[:len(keys)-1] {
		next, ok := at[key].(helm.Values)
		if !ok {
			next = helm.Values{}
			at[key] = next
		}
		at = next
	}
	at[keys[len(keys)-1]] = value
	return values
}

// rolledValues returns values that give the Pods of some components another annotation.
func rolledValues(values helm.Values, revision string, rolled ...component) helm.Values {
	for _, c := range rolled {
		set(values, helm.Values{"revision": revision}, append(c.values, "podAnnotations")...)
	}
	return values
}

// TestInstall is what a new user does: install the chart with a Configuration in the values,
// test the release, and remove it.
func TestInstall(t *testing.T) {
	w := newWorld(t)
	w.step("install, with a Configuration", func(t *testing.T) {
		w.installWithConfigurations(t, withDescriptions(baseValues(), "v0"))
	})
	w.step("the tests of the release", w.testRelease)
	w.step("a rollback to the first revision", w.testFirstRevision)
	w.step("uninstall", w.testUninstall)
}

// TestRelease is the life of a release of the chart, with running brokers.
func TestRelease(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	var b brokers
	w.step("install an earlier release, with Configurations", func(t *testing.T) {
		w.release.Chart = earlier(t)
		w.installWithConfigurations(t, withDescriptions(baseValues(), "v0"))
	})
	w.step("create brokers", func(*testing.T) { b = w.createBrokers() })
	slots := w.watchSlots(b)
	rolling := func(name string, rolled []component, do func(t *testing.T) error) {
		w.step(name, func(t *testing.T) { w.roll(t, b, rolled, do) })
	}

	rolling("upgrade", components, func(t *testing.T) error {
		w.release.Chart = nil
		_, err := w.release.Upgrade(t.Context(), rolledValues(baseValues(), "2", components...))
		w.assertColumn(true)
		return err
	})
	rolling("roll back", components, func(t *testing.T) error {
		err := w.release.Rollback(0)
		w.assertColumn(false)
		return err
	})
	values := baseValues()
	for _, c := range components {
		rolling("upgrade that changes only "+c.name, []component{c}, func(t *testing.T) error {
			_, err := w.release.Upgrade(t.Context(), rolledValues(values, "4", c))
			return err
		})
	}
	w.step("the tests of the release", w.testRelease)
	w.step("an upgrade with a Configuration in the values", func(t *testing.T) { w.testConfigurations(t, values) })
	w.step("a rollback to the first revision, which lacks the Configuration", w.testFirstRevision)
	w.step("the webhook is down", func(t *testing.T) { w.testWebhookDown(t, b) })
	w.step("uninstall", func(t *testing.T) {
		w.testUninstall(t)
		w.assertUntouched(b)
	})
	w.step("install again", func(t *testing.T) {
		w.installWithConfigurations(t, withDescriptions(values, "v0"))
		w.awaitReady(held, "held", 2)
		w.assertUntouched(b)
	})
	slots.assert(t)
}

// roll carries out a step that replaces the Pods of some components, and checks that the
// brokers do not notice. That Akri works afterwards, the next step shows.
func (w *world) roll(t *testing.T, b brokers, rolled []component, do func(t *testing.T) error) {
	before := map[string]map[string]bool{}
	for _, c := range components {
		before[c.name] = w.containers(c.name)
	}
	if err := do(t); err != nil {
		t.Fatal(err)
	}
	w.awaitAll()
	for _, c := range rolled {
		w.awaitRolled(c.name, before[c.name])
	}
	w.assertUntouched(b)
}

// awaitAll waits until all components are rolled out.
func (w *world) awaitAll() {
	w.t.Helper()
	for _, c := range components {
		w.kubectl("--namespace", w.release.Namespace, "rollout", "status", "--timeout="+timeout.String(), c.workload)
	}
}

// testRelease runs the tests of the chart.
func (w *world) testRelease(t *testing.T) {
	var log bytes.Buffer
	if err := w.release.Test(t.Context(), &log); err != nil {
		t.Errorf("%v\n%s", err, &log)
	}
	t.Logf("helm test: %s", &log)
}

// withDescriptions adds a Configuration with these devices to the values. It has an object in
// another namespace, and so a finalizer, which only the controller removes.
func withDescriptions(values helm.Values, descriptions string) helm.Values {
	return set(values, []any{helm.Values{"name": "from-values", "namespace": "default", "spec": helm.Values{
		"discoveryHandler": helm.Values{"name": "debugEcho", "discoveryDetails": "descriptions: [" + descriptions + "]"},
		"configurationBrokerResources": []any{helm.Values{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": helm.Values{"name": "from-values", "namespace": akri.Namespace},
		}},
	}}}, "configurations")
}

// installWithConfigurations installs the release: a hook creates its Configurations, whose kind may
// be unknown before, and which the webhook reviews. The next revision takes them over.
func (w *world) installWithConfigurations(t *testing.T, values helm.Values) {
	if _, err := w.release.Install(t.Context(), values); err != nil {
		t.Fatal(err)
	}
	w.awaitAll()
	w.awaitReady("default", "from-values", 1)
	before := w.identityFromValues()
	if _, err := w.release.Upgrade(t.Context(), values); err != nil {
		t.Fatal(err)
	}
	w.awaitReady("default", "from-values", 1)
	if now := w.identityFromValues(); now != before {
		t.Errorf("the Configuration was %s, and is %s", before, now)
	}
}

func (w *world) identityFromValues() string {
	return w.kubectl("--namespace=default", "get", "configuration", "from-values",
		"--output=jsonpath={.metadata.uid} {.metadata.deletionTimestamp} {.metadata.annotations.helm\\.sh/resource-policy}")
}

// testFirstRevision returns to the first revision, which lacks the Configuration in its values, and
// to the last again.
func (w *world) testFirstRevision(t *testing.T) {
	before := w.identityFromValues()
	for _, revision := range []int{1, 0} {
		var log bytes.Buffer
		w.release.HookOutput = &log
		err := w.release.Rollback(revision)
		w.release.HookOutput = nil
		if err != nil {
			t.Fatalf("%v\n%s", err, &log)
		}
		w.awaitAll()
		if now := w.identityFromValues(); now != before {
			t.Errorf("the Configuration was %s, and is %s", before, now)
		}
	}
}

// testConfigurations upgrades to values with a Configuration, and changes it. It is deleted
// with the release.
func (w *world) testConfigurations(t *testing.T, values helm.Values) {
	for i, descriptions := range []string{"v0", "v0, v1"} {
		if _, err := w.release.Upgrade(t.Context(), withDescriptions(values, descriptions)); err != nil {
			t.Fatal(err)
		}
		w.awaitReady("default", "from-values", i+1)
	}
}

// testUninstall checks what is left after the release was uninstalled.
func (w *world) testUninstall(t *testing.T) {
	const finalizers = "--output=jsonpath={.metadata.finalizers}"
	if now := w.kubectl("--namespace=default", "get", "configuration", "from-values", finalizers); !strings.Contains(now, "akri.sh/cleanup") {
		t.Errorf("the Configuration in the values has the finalizers %s, want one that only the controller removes", now)
	}
	if err := w.release.Uninstall(); err != nil {
		t.Fatal(err)
	}
	kept := func(name string) bool {
		kind, place, _ := strings.Cut(name, " ")
		return strings.HasPrefix(place, held+"/") || name == "Namespace /"+held || name == "Namespace /"+akri.Namespace ||
			(kind == "CustomResourceDefinition" || kind == "APIService") && strings.HasSuffix(place, ".akri.sh") ||
			// The controller's lock outlives it, so that it is never held twice.
			name == "Lease "+akri.Namespace+"/akri-controller" ||
			// Kubernetes creates these in every namespace.
			name == "ServiceAccount "+akri.Namespace+"/default" || name == "ConfigMap "+akri.Namespace+"/kube-root-ca.crt"
	}
	w.eventually("what is left after the release is gone", func() string {
		now, err := akri.Objects(context.WithoutCancel(t.Context()), w)
		if err != nil {
			return err.Error()
		}
		var left []string
		for _, name := range difference(now, w.before) {
			if !kept(name) {
				left = append(left, name)
			}
		}
		return strings.Join(left, ", ")
	})
	for _, crd := range []string{"configurations.akri.sh", "instances.akri.sh"} {
		w.kubectl("get", "crd", crd)
	}
}
