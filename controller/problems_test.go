package controller_test

import (
	"cmp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
)

// Each invalid template is reported with its place and cause. It does not affect its
// siblings or another Configuration.
func TestProblemsAreReported(t *testing.T) {
	cases := map[string]struct {
		template string
		reason   string
		says     []string
		compiles bool
		// group is the Configuration's reason where it is another.
		group string
	}{
		"does not parse": {
			template: `{apiVersion: v1, kind: ConfigMap, metadata: {name: wrong}, data: {k: "{{ INSTANCE_NAME"}}`,
			reason:   v0.ReasonInvalidTemplate,
			says:     []string{"instanceBrokerResources[1]", "data.k"},
		},
		"missing property": {
			template: `{apiVersion: v1, kind: ConfigMap, metadata: {name: wrong}, data: {k: "{{INSTANCE_PROPERTIES.NONE}}"}}`,
			reason:   v0.ReasonRenderFailed,
			says:     []string{"instanceBrokerResources[1]", "data.k", "NONE", "TEXT"},
			compiles: true,
		},
		"unknown kind": {
			template: `{apiVersion: example.com/v1, kind: Foo, metadata: {name: wrong}}`,
			reason:   v0.ReasonKindUnavailable,
			says:     []string{"instanceBrokerResources[1]", "Foo", "example.com/v1"},
			compiles: true,
			group:    v0.ReasonKindUnavailable,
		},
		"rejected by the server": {
			template: `{apiVersion: v1, kind: Service, metadata: {name: wrong}, spec: {ports: [{port: 99999}]}}`,
			reason:   v0.ReasonApplyFailed,
			says:     []string{"instanceBrokerResources[1]", "spec.ports[0].port", "65535"},
			compiles: true,
		},
		"unknown field": {
			template: `{apiVersion: v1, kind: ConfigMap, metadata: {name: wrong}, dat: {k: v}}`,
			reason:   v0.ReasonApplyFailed,
			says:     []string{"instanceBrokerResources[1]", "dat"},
			compiles: true,
		},
		"another namespace": {
			template: `{apiVersion: v1, kind: ConfigMap, metadata: {name: wrong, namespace: kube-system}}`,
			reason:   v0.ReasonRefused,
			says:     []string{"instanceBrokerResources[1]", "kube-system"},
			compiles: true,
		},
		"cluster-scoped": {
			template: `{apiVersion: v1, kind: Namespace, metadata: {name: wrong}}`,
			reason:   v0.ReasonRefused,
			says:     []string{"instanceBrokerResources[1]", "cluster-scoped"},
			compiles: true,
		},
		"rights": {
			template: `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: wrong}}`,
			reason:   v0.ReasonRefused,
			says:     []string{"instanceBrokerResources[1]", "RoleBinding"},
		},
		"same object twice": {
			template: `{apiVersion: v1, kind: ConfigMap, metadata: {name: "{{INSTANCE_NAME}}"}}`,
			reason:   v0.ReasonRenderFailed,
			says:     []string{"instanceBrokerResources[1]", "instanceBrokerResources[0]"},
			compiles: true,
		},
		"same object twice, once with its namespace": {
			template: `{apiVersion: v1, kind: ConfigMap, metadata: {name: "{{INSTANCE_NAME}}", namespace: HOME}}`,
			reason:   v0.ReasonConflict,
			says:     []string{"instanceBrokerResources[1]", "instanceBrokerResources[0]"},
			compiles: true,
		},
		"exists already": {
			template: `{apiVersion: v1, kind: ConfigMap, metadata: {name: taken}, data: {k: v}}`,
			reason:   v0.ReasonConflict,
			says:     []string{"instanceBrokerResources[1]", "ConfigMap taken"},
			compiles: true,
		},
	}
	c := newCluster(t)
	c.Apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: taken}\ndata: {theirs: x}")
	c.Apply(strings.ReplaceAll(config, "group", "well"))
	well := c.Instance("cfg", "cfg-1", map[string]string{"TEXT": "foo"})
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := c.in(t)
			cfg := strings.ReplaceAll(strings.ReplaceAll(name, " ", "-"), ",", "")
			c.Apply(`
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: ` + cfg + `}
spec:
  discoveryHandler: {name: debugEcho}
  instanceBrokerResources:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{INSTANCE_NAME}}"}, data: {k: v}}
  - ` + strings.ReplaceAll(tc.template, "HOME", c.Namespace))
			instance := c.Instance(cfg, cfg+"-1", map[string]string{"TEXT": "secret value"})
			c.condition(instance, v0.ConditionApplied, metav1.ConditionFalse, tc.reason, tc.says...)
			c.condition(instance, v0.ConditionReady, metav1.ConditionFalse, tc.reason)
			if tc.compiles {
				c.exists("v1", "ConfigMap", cfg+"-1")
				c.condition(configuration(cfg), v0.ConditionAccepted, metav1.ConditionTrue, v0.ReasonAccepted)
				c.condition(configuration(cfg), v0.ConditionReady, metav1.ConditionFalse, cmp.Or(tc.group, v0.ReasonInstancesFailing))
			} else {
				c.condition(configuration(cfg), v0.ConditionAccepted, metav1.ConditionFalse, tc.reason, tc.says...)
			}
			for _, condition := range instance.Status.Conditions {
				if strings.Contains(condition.Message, "secret value") {
					t.Errorf("a property's value is shown: %s", condition.Message)
				}
			}
		})
	}
	c.ready(well)
	taken := c.exists("v1", "ConfigMap", "taken")
	if data, _, _ := unstructured.NestedStringMap(taken.Object, "data"); len(data) != 1 || len(taken.GetLabels()) != 0 {
		t.Errorf("another owner's ConfigMap was changed: %v", taken.Object)
	}
}

// While a template has an error, existing objects stay.
func TestWrongEditRemovesNothing(t *testing.T) {
	c := newCluster(t)
	c.Apply(config)
	instance := c.Instance("cfg", "cfg-1", map[string]string{"TEXT": "foo"})
	c.ready(instance)
	var cfg v0.Configuration
	c.Read("cfg", &cfg)
	patch := `[{"op":"remove","path":"/spec/instanceBrokerResources/1"},` +
		`{"op":"replace","path":"/spec/instanceBrokerResources/0/data/description","value":"{{ NOSUCH }}"}]`
	if err := c.Patch(t.Context(), &cfg, client.RawPatch(types.JSONPatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
	c.condition(
		instance,
		v0.ConditionApplied,
		metav1.ConditionFalse,
		v0.ReasonInvalidTemplate,
		"instanceBrokerResources[0]",
		"data.description",
		"NOSUCH",
	)
	c.settled()
	if c.object("v1", "Service", "cfg-1-b") == nil {
		t.Error("the Service was pruned although its Configuration does not compile")
	}
	patch = `[{"op":"replace","path":"/spec/instanceBrokerResources/0/data/description","value":"fine"}]`
	if err := c.Patch(t.Context(), &cfg, client.RawPatch(types.JSONPatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
	c.ready(instance)
	c.gone("v1", "Service", "cfg-1-b")
}

// A Pod cannot be updated to an edited template: it is replaced.
func TestImmutableFieldsOfAPod(t *testing.T) {
	c := newCluster(t)
	pod := func(command string) string {
		return configWith("cfg", `
  - apiVersion: v1
    kind: Pod
    metadata: {name: "{{INSTANCE_NAME}}"}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: c, image: i, command: [`) + command + `]}]
`
	}
	c.Apply(pod("one"))
	c.Instance("cfg", "cfg-1", nil)
	before := c.exists("v1", "Pod", "cfg-1")
	c.Apply(pod("two"))
	c.replaced(before)
}

// A terminated Pod, here one that its node rejected, is replaced.
func TestTerminatedPodsAreReplaced(t *testing.T) {
	c := newCluster(t)
	c.Apply(configWith("cfg", `
  - apiVersion: v1
    kind: Pod
    metadata: {name: "{{INSTANCE_NAME}}"}
    spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: i}]}`))
	instance := c.Instance("cfg", "cfg-1", nil)
	for range 2 {
		pod := c.exists("v1", "Pod", "cfg-1")
		failed := `{"status":{"phase":"Failed","reason":"UnexpectedAdmissionError","message":"no healthy devices present"}}`
		if err := c.Status().Patch(t.Context(), pod, client.RawPatch(types.MergePatchType, []byte(failed))); err != nil {
			t.Fatal(err)
		}
		c.condition(
			instance,
			v0.ConditionReady,
			metav1.ConditionFalse,
			v0.ReasonProgressing,
			"UnexpectedAdmissionError: no healthy devices present",
		)
		c.noticed("Instance", "cfg-1", "PodReplaced")
		c.replaced(pod)
	}
}

// An object that must be recreated stays if the new one would be rejected.
func TestNothingIsRecreatedInVain(t *testing.T) {
	c := newCluster(t)
	write := func(app, port string) {
		c.Apply(configWith("cfg", `
  - apiVersion: apps/v1
    kind: Deployment
    metadata: {name: "{{INSTANCE_NAME}}", annotations: {akri.sh/on-immutable: recreate}}
    spec:
      selector: {matchLabels: {app: `) + app + `}}
      template:
        metadata: {labels: {app: ` + app + `}}
        spec: {containers: [{name: c, image: i, ports: [{containerPort: ` + port + `}]}]}
`)
	}
	write("a", "80")
	instance := c.Instance("cfg", "cfg-1", nil)
	old := c.exists("apps/v1", "Deployment", "cfg-1")
	write("b", "80000")
	c.condition(instance, v0.ConditionApplied, metav1.ConditionFalse, v0.ReasonImmutable, "the old one is kept", "containerPort")
	c.settled()
	if now := c.object("apps/v1", "Deployment", "cfg-1"); now == nil || now.GetUID() != old.GetUID() {
		t.Fatal("the Deployment was deleted although the new one would be rejected")
	}
	write("b", "8000")
	c.replaced(old)
	c.condition(instance, v0.ConditionApplied, metav1.ConditionTrue, v0.ReasonApplied)
}
