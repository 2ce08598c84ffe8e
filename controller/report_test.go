package controller_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/internal/apitest"
	"akri.sh/akri/internal/fulltest"
)

// brokers is a Configuration with a ConfigMap and a Deployment for each device.
var brokers = configWith("cfg", `
  - apiVersion: apps/v1
    kind: Deployment
    metadata: {name: "{{INSTANCE_NAME}}"}
    spec:
      replicas: 0
      selector: {matchLabels: {app: "{{INSTANCE_NAME}}"}}
      template:
        metadata: {labels: {app: "{{INSTANCE_NAME}}"}}
        spec: {containers: [{name: c, image: i}]}`)

// traffic intercepts the controller's requests for the test's namespace.
type traffic struct {
	fail   atomic.Pointer[func(*http.Request) error] // of requests that are not reads
	status atomic.Int64                              // writes of Instances' statuses that were answered
}

// intercept restarts the controller with its requests intercepted.
func (c *cluster) intercept() *traffic {
	seen := &traffic{}
	c.stop()
	c.Config = rest.CopyConfig(c.Config)
	c.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return apitest.RoundTripper(func(request *http.Request) (*http.Response, error) {
			write := request.Method != http.MethodGet && strings.Contains(request.URL.Path, "/"+c.Namespace+"/")
			if fail := seen.fail.Load(); fail != nil && write {
				if err := (*fail)(request); err != nil {
					return nil, err
				}
			}
			if write && strings.HasSuffix(request.URL.Path, "/status") && strings.Contains(request.URL.Path, "/instances/") {
				seen.status.Add(1)
			}
			return next.RoundTrip(request)
		})
	})
	c.run()
	return seen
}

// rolledOut marks a Deployment as ready, as its controller would.
func (c *cluster) rolledOut(name string) {
	c.T.Helper()
	deployment := c.exists("apps/v1", "Deployment", name)
	status := fmt.Sprintf(`{"status":{"observedGeneration":%d,"conditions":[{"type":"Available","status":"True"},`+
		`{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable"}]}}`, deployment.GetGeneration())
	if err := c.Status().Patch(c.T.Context(), deployment, client.RawPatch(types.MergePatchType, []byte(status))); err != nil {
		c.T.Fatal(err)
	}
}

// One write says that the objects are applied and that they are ready.
func TestFirstReportIsHeldBack(t *testing.T) {
	c := newCluster(t)
	seen := c.intercept()
	c.Apply(brokers)
	first := c.Instance("cfg", "cfg-first", nil) // after it, the kind is known to be in use
	c.rolledOut(first.Name)
	c.ready(first)
	before := seen.status.Load()
	const devices = 5
	var instances []*v0.Instance
	for i := range devices {
		instances = append(instances, c.Instance("cfg", fmt.Sprintf("cfg-%d", i), nil))
		c.rolledOut(instances[i].Name)
	}
	for _, instance := range instances {
		c.ready(instance)
	}
	c.ready(configuration("cfg"))
	c.settled()
	if writes := seen.status.Load() - before; writes > devices+devices/2 { // a slow machine may need more than half a second for one
		t.Errorf("%d writes of the statuses of %d Instances", writes, devices)
	}
	for _, instance := range instances {
		c.Read(instance.Name, instance)
		if len(instance.Status.Resources) != 1 || !instance.Status.Resources[0].Ready {
			t.Errorf("inventory of %s: %+v", instance.Name, instance.Status.Resources)
		}
	}

	// What is not ready in time is reported, too.
	late := c.Instance("cfg", "cfg-late", nil)
	c.condition(late, v0.ConditionReady, metav1.ConditionFalse, v0.ReasonProgressing, "Deployment cfg-late")
	c.condition(late, v0.ConditionApplied, metav1.ConditionTrue, v0.ReasonApplied)
}

// A controller that ends while it holds a report back loses nothing: the next one
// finds the objects by their owner, reports them, and prunes what is not rendered any
// more.
func TestHeldReportIsNotLost(t *testing.T) {
	c := newCluster(t)
	seen := c.intercept()
	var died atomic.Bool
	die := func(request *http.Request) error { // the controller ends before it has written the status
		if strings.HasSuffix(request.URL.Path, "/instances/cfg-1/status") {
			died.Store(true)
			return syscall.ECONNRESET
		}
		return nil
	}
	seen.fail.Store(&die)
	const (
		kept    = "\n  - {apiVersion: v1, kind: ConfigMap, metadata: {name: '{{INSTANCE_NAME}}-kept'}}"
		former  = "\n  - {apiVersion: v1, kind: ConfigMap, metadata: {name: '{{INSTANCE_NAME}}-former'}}"
		another = "\n  - {apiVersion: v1, kind: Service, metadata: {name: '{{INSTANCE_NAME}}-s'}, spec: {ports: [{port: 80}]}}"
	)
	c.Apply(brokers + kept + former + another)
	sibling := c.Instance("cfg", "cfg-0", nil)
	c.rolledOut("cfg-0")
	c.ready(sibling)
	instance := c.Instance("cfg", "cfg-1", nil)
	c.Eventually("the first report", func() string {
		if !died.Load() {
			return "it is not written"
		}
		return ""
	})
	c.stop()
	uid := c.exists("apps/v1", "Deployment", "cfg-1").GetUID()
	c.exists("v1", "ConfigMap", "cfg-1-former")
	c.exists("v1", "Service", "cfg-1-s")
	c.Read("cfg-1", instance)
	if len(instance.Status.Resources) != 0 || meta.FindStatusCondition(instance.Status.Conditions, v0.ConditionApplied) != nil {
		t.Fatalf("a status was written: %+v", instance.Status)
	}

	seen.fail.Store(nil)
	c.Apply(brokers + kept) // no template names Services any more
	c.run()
	c.gone("v1", "ConfigMap", "cfg-1-former")
	c.gone("v1", "Service", "cfg-1-s")
	c.rolledOut("cfg-1")
	c.ready(instance)
	c.Read("cfg-1", instance)
	if len(instance.Status.Resources) != 2 {
		t.Errorf("inventory: %+v", instance.Status.Resources)
	}
	if c.exists("apps/v1", "Deployment", "cfg-1").GetUID() != uid {
		t.Error("the Deployment was created again")
	}
}

// An API server that does not answer for a moment costs no write of a status, no Event
// and no second apply.
func TestUnavailableServerIsNotReported(t *testing.T) {
	fulltest.Only(t)
	c := newCluster(t)
	seen := c.intercept()
	c.Apply(config)
	instance := c.Instance("cfg", "cfg-1", map[string]string{"TEXT": "foo"})
	c.ready(instance, configuration("cfg"))
	c.settled()
	c.Read("cfg-1", instance)
	before := instance.ResourceVersion
	statuses := seen.status.Load()

	var refused atomic.Int64
	fail := func(*http.Request) error {
		refused.Add(1)
		return syscall.ECONNREFUSED
	}
	seen.fail.Store(&fail)
	edit := client.RawPatch(types.MergePatchType, []byte(`{"data":{"description":"edited"}}`))
	object := c.exists("v1", "ConfigMap", "cfg-1-a")
	if err := c.Patch(t.Context(), object, edit, client.FieldOwner("test")); err != nil {
		t.Fatal(err)
	}
	c.Eventually("some attempts", func() string {
		if refused.Load() < 4 {
			return fmt.Sprintf("%d", refused.Load())
		}
		return ""
	})
	seen.fail.Store(nil)
	c.Eventually("the repair", func() string {
		data, _, _ := unstructured.NestedStringMap(c.object("v1", "ConfigMap", "cfg-1-a").Object, "data")
		if data["description"] == "edited" {
			return "it is still edited"
		}
		return ""
	})
	c.settled()
	if writes := seen.status.Load() - statuses; writes != 0 {
		t.Errorf("%d writes of the Instance's status", writes)
	}
	c.Read("cfg-1", instance)
	if instance.ResourceVersion != before {
		t.Errorf("the Instance was written: %+v", instance.Status)
	}
	if applied := meta.FindStatusCondition(instance.Status.Conditions, v0.ConditionApplied); applied.Status != metav1.ConditionTrue {
		t.Errorf("condition Applied: %+v", applied)
	}
}

// The API server stores the largest inventory that a parent may have.
func TestLargestInventoryIsStored(t *testing.T) {
	c := newCluster(t)
	c.stop()
	c.Apply(brokers)
	instance := c.Instance("cfg", "cfg-1", nil)
	longest := func(n int) string { return strings.Repeat("n", n) }
	for i := range plan.MaxRecorded {
		instance.Status.Resources = append(instance.Status.Resources, v0.ResourceStatus{
			Group: longest(40), Version: "v1alpha1", Kind: longest(30), Namespace: longest(63), Name: fmt.Sprintf("%04d", i) + longest(249),
			UID: longest(36), Hash: longest(16), ManagedFieldsHash: longest(16), Orphan: true, Template: 63,
			Reason: strings.Repeat("<", plan.MaxReason/2),
		})
	}
	text, err := json.Marshal(instance.Status)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Status().Update(t.Context(), instance); err != nil {
		t.Errorf("%d entries, %d bytes, %d for each: %v", plan.MaxRecorded, len(text), len(text)/plan.MaxRecorded, err)
	}
}

// A report of changed Instances does not repeat the inventory of their group, which may
// be large.
func TestGroupReportsWhatHasChanged(t *testing.T) {
	c := newCluster(t)
	seen := c.intercept()
	c.Apply(config)
	c.Instance("cfg", "cfg-1", map[string]string{"TEXT": "foo"})
	cfg := configuration("cfg")
	c.ready(cfg)
	inventory := cfg.Status.Resources
	if len(inventory) == 0 {
		t.Fatal("the group has no objects")
	}
	var reports, repeated atomic.Int64
	read := func(request *http.Request) error {
		if !strings.HasSuffix(request.URL.Path, "/configurations/cfg/status") {
			return nil
		}
		body, err := request.GetBody()
		if err != nil {
			return err
		}
		text, err := io.ReadAll(body)
		if reports.Add(1); strings.Contains(string(text), `"resources"`) {
			repeated.Add(1)
		}
		return err
	}
	seen.fail.Store(&read)
	c.Instance("cfg", "cfg-2", map[string]string{"TEXT": "foo"})
	c.Eventually("a report of both Instances", func() string {
		if c.Read("cfg", cfg); cfg.Status.ReadyInstances != 2 {
			return fmt.Sprintf("%d are ready", cfg.Status.ReadyInstances)
		}
		return ""
	})
	if reports.Load() == 0 || repeated.Load() != 0 {
		t.Errorf("%d of %d reports repeat the inventory", repeated.Load(), reports.Load())
	}
	if !slices.Equal(cfg.Status.Resources, inventory) {
		t.Errorf("the inventory has changed: %v", cfg.Status.Resources)
	}
}
