package controller_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	lua "github.com/yuin/gopher-lua"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"

	v0 "akri.sh/akri/api/v0"
)

// TestGitOps checks how Flux, which uses kstatus, and Argo CD, which uses the checks in
// config/argocd, judge the statuses that the controller writes.
func TestGitOps(t *testing.T) {
	c := newCluster(t)
	c.stop()
	template := func(name, kind, rest string) string {
		return fmt.Sprintf(`
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: %s}
spec:
  discoveryHandler: {name: debugEcho}
  instanceBrokerResources:
  - {%s, metadata: {name: "{{INSTANCE_NAME}}"}, %s}
`, name, kind, rest)
	}
	configMap := func(name, data string) string {
		return template(name, "apiVersion: v1, kind: ConfigMap", "data: {k: "+data+"}")
	}
	pod := template("pod", "apiVersion: v1, kind: Pod", `spec: {containers: [{name: c, image: "example/none:v1"}]}`)

	for _, manifest := range []string{
		configMap("empty", "v"), configMap("ready", "v"), pod, configMap("conflict", "v"), configMap("invalid", `"{{ NOTHING }}"`),
		"apiVersion: akri.sh/v0\nkind: Configuration\nmetadata: {name: bare}\nspec: {discoveryHandler: {name: debugEcho}}",
	} {
		c.Apply(manifest)
	}
	c.judged("Configuration", "ready", status.InProgressStatus, "Progressing") // no status yet
	c.judgedByFlux("ready", status.InProgressStatus)
	c.Apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: conflict-1}")
	for _, name := range []string{"ready", "pod", "conflict", "bare"} {
		c.Instance(name, name+"-1", nil)
	}
	c.judged("Instance", "ready-1", status.InProgressStatus, "Progressing") // no status yet

	c.run()
	defer c.stop()
	c.judged("Configuration", "empty", status.InProgressStatus, "Suspended")
	c.judged("Configuration", "invalid", status.FailedStatus, "Degraded")
	for name, want := range map[string]status.Status{
		"empty": status.CurrentStatus, "ready": status.CurrentStatus, "pod": status.CurrentStatus,
		"conflict": status.InProgressStatus, "invalid": status.FailedStatus,
	} {
		c.judgedByFlux(name, want)
	}
	c.Apply(configMap("invalid", "v"))
	c.judged("Configuration", "invalid", status.InProgressStatus, "Suspended")
	for _, kind := range []string{"Configuration", "Instance"} {
		name := func(name string) string {
			if kind == "Instance" {
				return name + "-1"
			}
			return name
		}
		c.judged(kind, name("ready"), status.CurrentStatus, "Healthy")
		c.judged(kind, name("bare"), status.CurrentStatus, "Healthy") // no objects
		c.judged(kind, name("pod"), status.InProgressStatus, "Progressing")
		c.judged(kind, name("conflict"), status.InProgressStatus, "Degraded")
	}

	c.stop()
	c.Apply(configMap("ready", "changed"))
	c.judged("Configuration", "ready", status.InProgressStatus, "Progressing") // an older generation
	c.judgedByFlux("ready", status.InProgressStatus)
	held := c.object("akri.sh/v0", "Configuration", "ready")
	c.patch(held, `{"metadata":{"finalizers":["example.com/hold"]}}`)
	c.delete(held)
	c.judged("Configuration", "ready", status.TerminatingStatus, "Progressing")
	c.patch(held, `{"metadata":{"finalizers":null}}`)
}

// TestHealthOfStates checks the states that take more than one object to reach.
func TestHealthOfStates(t *testing.T) {
	for name, test := range map[string]struct{ kind, conditions, health string }{
		"a rollout": {"Configuration", `
    - {type: Accepted, status: "True", reason: Accepted}
    - {type: Applied, status: "False", reason: RolloutWaiting}
    - {type: Ready, status: "False", reason: RolloutWaiting}`, "Progressing"},
		"discovery fails on a node": {"Configuration", `
    - {type: Accepted, status: "True", reason: Accepted}
    - {type: Discovering, status: "False", reason: DiscoveryFailed, message: "node n"}
    - {type: Applied, status: "True", reason: Applied}
    - {type: Ready, status: "True", reason: Ready}`, "Degraded"},
		"a rollout of an Instance": {"Instance", `
    - {type: Applied, status: "False", reason: RolloutWaiting}
    - {type: Ready, status: "False", reason: RolloutWaiting}`, "Progressing"},
		"an Instance without owner": {"Instance", `
    - {type: Applied, status: "False", reason: ConfigurationNotFound}
    - {type: Ready, status: "False", reason: ConfigurationNotFound}`, "Degraded"},
	} {
		t.Run(name, func(t *testing.T) {
			var object unstructured.Unstructured
			text := "apiVersion: akri.sh/v0\nkind: " + test.kind +
				"\nmetadata: {generation: 1}\nstatus:\n    observedGeneration: 1\n    conditions:" + test.conditions
			if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
				t.Fatal(err)
			}
			if health, message := argoHealth(t, &object); health != test.health {
				t.Errorf("it is %s (%s), want %s", health, message, test.health)
			}
		})
	}
}

// TestColumnsOfK9s checks that the columns for k9s exist in the objects.
func TestColumnsOfK9s(t *testing.T) {
	text, err := os.ReadFile("../config/k9s/views.yaml")
	if err != nil {
		t.Fatal(err)
	}
	// The fields of k9s' schema of views.
	var file struct {
		Views map[string]struct {
			SortColumn string   `json:"sortColumn"`
			Columns    []string `json:"columns"`
		} `json:"views"`
	}
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		t.Fatal(err)
	}
	ready := metav1.Condition{Type: v0.ConditionReady, Status: metav1.ConditionTrue, Reason: "r", Message: "m"}
	for view, object := range map[string]any{
		"akri.sh/v0/configurations": &v0.Configuration{
			Spec: v0.ConfigurationSpec{DiscoveryHandler: v0.DiscoveryHandler{Name: "h"}, Capacity: 1},
			Status: v0.ConfigurationStatus{
				Instances: 1, ReadyInstances: 1, FailingInstances: 1, Conditions: []metav1.Condition{ready},
			},
		},
		"akri.sh/v0/instances": &v0.Instance{
			Spec: v0.InstanceSpec{
				ConfigurationName: "c", Nodes: []string{"n"}, Shared: true, Capacity: 1, DeviceUsage: map[string]v0.SlotOwner{"s": "n"},
			},
			Status: v0.InstanceStatus{Conditions: []metav1.Condition{ready}},
		},
	} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for _, column := range file.Views[view].Columns {
			name, expression, custom := strings.Cut(strings.TrimSuffix(column, "|W"), ":")
			names[name] = true
			if !custom {
				continue
			}
			path := jsonpath.New(name)
			if err := path.Parse("{" + expression + "}"); err != nil {
				t.Errorf("%s: %s: %v", view, column, err)
				continue
			}
			if results, err := path.FindResults(content); err != nil || len(results[0]) == 0 {
				t.Errorf("%s: %s: the object has no such field: %v", view, column, err)
			}
		}
		if sorted, _, _ := strings.Cut(file.Views[view].SortColumn, ":"); !names[sorted] || !names["NAME"] {
			t.Errorf("%s: the columns are %v, sorted by %q", view, names, sorted)
		}
	}
}

// judged waits until kstatus and the checks of Argo CD judge an object as wanted.
func (c *cluster) judged(kind, name string, want status.Status, health string) {
	c.T.Helper()
	c.Eventually(fmt.Sprintf("%s %s is %s and %s", kind, name, want, health), func() string {
		object := c.object("akri.sh/v0", kind, name)
		if object == nil {
			return "it does not exist"
		}
		result, err := status.Compute(object)
		if err != nil {
			c.T.Fatal(err)
		}
		got, message := argoHealth(c.T, object)
		if result.Status != want || got != health {
			return fmt.Sprintf("it is %s (%s) and %s (%s)", result.Status, result.Message, got, message)
		}
		return ""
	})
}

// judgedByFlux waits until the expressions of docs/operating.md judge a Configuration as
// wanted. As Flux does, it parses them without types, and the first that holds decides.
func (c *cluster) judgedByFlux(name string, want status.Status) {
	c.T.Helper()
	page, err := os.ReadFile("../docs/operating.md")
	if err != nil {
		c.T.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "```yaml\napiVersion: kustomize.toolkit.fluxcd.io/v1\n")
	text, _, _ = strings.Cut(text, "```")
	var kustomization struct {
		Kind string
		Spec struct {
			Wait             bool
			HealthCheckExprs []struct{ APIVersion, Kind, InProgress, Failed, Current string }
		}
	}
	if err := yaml.UnmarshalStrict([]byte(text), &kustomization); err != nil {
		c.T.Fatal(err)
	}
	checks := kustomization.Spec.HealthCheckExprs
	if len(checks) != 1 || checks[0].APIVersion != v0.GroupVersion.String() || checks[0].Kind != "Configuration" {
		c.T.Fatalf("the page checks %v", checks)
	}
	env, err := cel.NewEnv()
	if err != nil {
		c.T.Fatal(err)
	}
	holds := func(expression string, object map[string]any) bool {
		tree, issues := env.Parse(expression)
		if issues.Err() != nil {
			c.T.Fatalf("%s: %v", expression, issues.Err())
		}
		program, err := env.Program(tree)
		if err != nil {
			c.T.Fatalf("%s: %v", expression, err)
		}
		value, _, err := program.Eval(object)
		if err != nil {
			c.T.Fatalf("%s: %v", expression, err)
		}
		return value == types.True
	}
	c.Eventually(fmt.Sprintf("Configuration %s is %s for Flux", name, want), func() string {
		object := c.object("akri.sh/v0", "Configuration", name).Object
		got := status.InProgressStatus
		switch {
		case holds(checks[0].InProgress, object):
		case holds(checks[0].Failed, object):
			got = status.FailedStatus
		case holds(checks[0].Current, object):
			got = status.CurrentStatus
		}
		if got != want {
			return fmt.Sprintf("it is %s: %v", got, object["status"])
		}
		return ""
	})
}

// argoHealth runs the check of Argo CD for an object, as Argo CD does: with the variable
// obj, and few libraries.
func argoHealth(t testing.TB, object *unstructured.Unstructured) (health, message string) {
	t.Helper()
	text, err := os.ReadFile("../config/argocd/health.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var settings struct{ Data map[string]string }
	if err := yaml.UnmarshalStrict(text, &settings); err != nil {
		t.Fatal(err)
	}
	script := settings.Data["resource.customizations.health."+v0.GroupVersion.Group+"_"+object.GetKind()]
	if strings.TrimSpace(script) == "" {
		t.Fatalf("there is no check for %s", object.GetKind())
	}
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		if err := state.CallByParam(lua.P{Fn: state.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			t.Fatal(err)
		}
	}
	state.SetGlobal("obj", luaValue(state, object.Object))
	if err := state.DoString(script); err != nil {
		t.Fatalf("%s: %v", object.GetKind(), err)
	}
	result, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("%s: the check returns %v", object.GetKind(), state.Get(-1))
	}
	return result.RawGetString("status").String(), result.RawGetString("message").String()
}

// luaValue converts a value of JSON.
func luaValue(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case map[string]any:
		table := state.NewTable()
		for key, each := range value {
			table.RawSetString(key, luaValue(state, each))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, each := range value {
			table.Append(luaValue(state, each))
		}
		return table
	case string:
		return lua.LString(value)
	case bool:
		return lua.LBool(value)
	case int64:
		return lua.LNumber(value)
	case float64:
		return lua.LNumber(value)
	}
	return lua.LNil
}
