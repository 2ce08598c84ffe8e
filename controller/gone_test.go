package controller_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller"
	"akri.sh/akri/internal/apitest"
)

// departing has an object for each device that goes with it, one that stays, and
// one for the group.
const departing = `
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: cfg}
spec:
  discoveryHandler: {name: debugEcho}
  instanceBrokerResources:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{INSTANCE_NAME}}-a"}}
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{INSTANCE_NAME}}-b"}}
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: "{{INSTANCE_NAME}}-stays", annotations: {akri.sh/deletion-policy: orphan}}
  configurationBrokerResources:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: group}}
`

// merge patches an object of the test's namespace as another client.
func (c *cluster) merge(kind, name, patch string) {
	c.T.Helper()
	c.patch(c.exists("v1", kind, name), patch)
}

// left fails if an object does not exist or is being deleted.
func (c *cluster) left(name, why string) {
	c.T.Helper()
	if object := c.object("v1", "ConfigMap", name); object == nil || object.GetDeletionTimestamp() != nil {
		c.T.Errorf("ConfigMap %s is deleted, although %s", name, why)
	}
}

// passed waits until the controller, which has one worker, has reconciled all
// Instances that changed before.
func (c *cluster) passed(marker string) {
	c.T.Helper()
	c.Instance("cfg", marker, nil)
	c.exists("v1", "ConfigMap", marker+"-a")
}

// Without a garbage collector, the objects of a device go as soon as it has gone:
// those that garbage collection would delete, and no others.
func TestObjectsGoWithTheirInstance(t *testing.T) {
	c := newClusterWith(t, controller.Options{Workers: 1})
	c.Apply(departing)
	cam, door, hall := c.Instance("cfg", "cfg-cam", nil), c.Instance("cfg", "cfg-door", nil), c.Instance("cfg", "cfg-hall", nil)
	for _, instance := range []*v0.Instance{cam, door, hall} {
		c.condition(instance, v0.ConditionApplied, metav1.ConditionTrue, v0.ReasonApplied)
	}
	c.Apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: other}}`)
	other := c.exists("v1", "ConfigMap", "other")
	c.merge("ConfigMap", "cfg-door-b", `{"metadata":{"ownerReferences":[
		{"apiVersion":"akri.sh/v0","kind":"Instance","name":"cfg-door","uid":"`+string(door.UID)+`","controller":true},
		{"apiVersion":"v1","kind":"ConfigMap","name":"other","uid":"`+string(other.GetUID())+`"}]}}`)
	c.condition(door, v0.ConditionApplied, metav1.ConditionTrue, v0.ReasonApplied)
	c.settled()

	for _, instance := range []*v0.Instance{cam, door} {
		c.delete(instance)
	}
	for _, name := range []string{"cfg-cam-a", "cfg-cam-b", "cfg-door-a"} {
		c.gone("v1", "ConfigMap", name)
	}
	c.passed("cfg-last")
	c.left("cfg-cam-stays", "its deletion policy is orphan")
	c.left("cfg-door-b", "it has another owner")
	c.left("cfg-hall-a", "its device is still there")
	c.left("group", "its group is still there")

	c.delete(&v0.Configuration{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "cfg"}})
	c.gone("v1", "ConfigMap", "group")
}

// When no node sees a device any more, but containers have its slots,
// the Instance is kept until they are free. Its objects are not: their containers may be
// what has the slots.
func TestObjectsGoBeforeTheirInstance(t *testing.T) {
	c := newCluster(t)
	c.Apply(departing)
	cam := c.Instance("cfg", "cfg-cam", nil)
	c.exists("v1", "ConfigMap", "cfg-cam-a")
	c.exists("v1", "ConfigMap", "group")
	set := func(spec string) {
		t.Helper()
		c.patch(cam, `{"spec":`+spec+`}`)
	}
	set(`{"nodes":[],"deviceUsage":{"cfg-cam-0":"node-a","cfg-cam-1":"node-b"}}`)
	for _, name := range []string{"cfg-cam-a", "cfg-cam-b", "group"} {
		c.gone("v1", "ConfigMap", name)
	}
	c.left("cfg-cam-stays", "its deletion policy is orphan")
	set(`{"nodes":["node-a"]}`)
	c.exists("v1", "ConfigMap", "cfg-cam-a")
	c.exists("v1", "ConfigMap", "group")
}

// A controller that starts creates nothing for a device that departed before, not even
// until the delay is over that protects from edits.
func TestNothingIsCreatedForDepartedDevices(t *testing.T) {
	one := controller.Options{Workers: 1}
	c := newClusterWith(t, one)
	c.Apply(departing)
	cam := c.Instance("cfg", "cfg-cam", nil)
	c.exists("v1", "ConfigMap", "cfg-cam-a")
	c.patch(cam, `{"spec":{"nodes":[],"deviceUsage":{"cfg-cam-0":"node-a"}}}`)
	c.gone("v1", "ConfigMap", "cfg-cam-a")
	c.gone("v1", "ConfigMap", "cfg-cam-b")
	c.settled()
	c.stop()

	c.runWith(one)
	c.passed("cfg-after")
	for _, name := range []string{"cfg-cam-a", "cfg-cam-b"} {
		if c.object("v1", "ConfigMap", name) != nil {
			t.Errorf("ConfigMap %s is created for a device that has departed", name)
		}
	}
}

// A device that is unplugged and plugged in again has an Instance of the same name:
// its objects are created again.
func TestObjectsGoWithTheirFormerInstance(t *testing.T) {
	c := newCluster(t)
	c.Apply(departing)
	for range 5 {
		cam := c.Instance("cfg", "cfg-cam", nil)
		c.Eventually("objects of the new Instance", func() string {
			object := c.object("v1", "ConfigMap", "cfg-cam-a")
			if object == nil || !metav1.IsControlledBy(object, cam) {
				return "not there"
			}
			return ""
		})
		c.delete(cam)
	}
}

// With Kubernetes' garbage collector, an Instance can be deleted in each of the
// three ways.
func TestObjectsGoAsTheDeletionSays(t *testing.T) {
	c := newClusterWith(t, controller.Options{Workers: 1})
	apitest.StartGarbageCollector(t)
	c.Apply(departing)
	for _, policy := range []metav1.DeletionPropagation{
		metav1.DeletePropagationOrphan, metav1.DeletePropagationForeground, metav1.DeletePropagationBackground,
	} {
		t.Run(string(policy), func(t *testing.T) {
			c := c.in(t)
			name := "cfg-" + strings.ToLower(string(policy))
			instance := c.Instance("cfg", name, nil)
			c.condition(instance, v0.ConditionApplied, metav1.ConditionTrue, v0.ReasonApplied)
			c.collectorIsCurrent()
			c.delete(instance, client.PropagationPolicy(policy))
			c.Eventually("the Instance to go", func() string {
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(instance), instance); !apierrors.IsNotFound(err) {
					return "it is there"
				}
				return ""
			})
			if policy != metav1.DeletePropagationOrphan {
				c.gone("v1", "ConfigMap", name+"-a")
				c.gone("v1", "ConfigMap", name+"-b")
				return
			}
			c.passed(name + "after")
			for _, object := range []string{name + "-a", name + "-b"} {
				c.left(object, "it was orphaned")
				if owners := c.exists("v1", "ConfigMap", object).GetOwnerReferences(); len(owners) != 0 {
					t.Errorf("%s is owned by %v: the garbage collector has not orphaned it", object, owners)
				}
			}
		})
	}
}

// An Instance that is deleted with --cascade=orphan leaves all of its objects, also
// those whose owner reference the garbage collector has not removed.
func TestOrphanedObjectsStay(t *testing.T) {
	c := newClusterWith(t, controller.Options{Workers: 1})
	c.Apply(departing)
	instance := c.Instance("cfg", "cfg-cam", nil)
	c.condition(instance, v0.ConditionApplied, metav1.ConditionTrue, v0.ReasonApplied)
	c.delete(instance, client.PropagationPolicy(metav1.DeletePropagationOrphan))
	c.passed("cfg-first")
	c.patch(instance, `{"metadata":{"finalizers":null}}`)
	c.passed("cfg-second")
	c.left("cfg-cam-a", "its Instance was deleted without it")
	c.left("cfg-cam-b", "its Instance was deleted without it")
}

// Objects that the garbage collector has orphaned are not taken back by a controller whose
// watch of Instances is late.
func TestOrphanedObjectsAreNotRepaired(t *testing.T) {
	c := newCluster(t)
	c.stop()
	watches := &heldWatches{resource: "instances", read: make(chan struct{}, 100)}
	c.Config = rest.CopyConfig(c.Config)
	c.Config.Wrap(watches.wrap)
	c.runWith(controller.Options{Workers: 1})
	c.Apply(departing)
	cam := c.Instance("cfg", "cfg-cam", nil)
	c.condition(cam, v0.ConditionApplied, metav1.ConditionTrue, v0.ReasonApplied)
	c.settled()

	watches.Lock()
	c.delete(cam, client.PropagationPolicy(metav1.DeletePropagationOrphan))
	c.merge("ConfigMap", "cfg-cam-a", `{"metadata":{"ownerReferences":[]}}`) // as the garbage collector does it
	select {
	case <-watches.read:
	case <-time.After(20 * time.Second):
		t.Error("the controller has not read the Instance")
	}
	watches.Unlock()
	c.passed("cfg-after")
	if owners := c.exists("v1", "ConfigMap", "cfg-cam-a").GetOwnerReferences(); len(owners) != 0 {
		t.Errorf("cfg-cam-a is owned again by %v", owners)
	}
}

// collectorIsCurrent waits until the garbage collector knows all ConfigMaps that exist
// now. It does not orphan those that it has not seen.
func (c *cluster) collectorIsCurrent() {
	c.T.Helper()
	last := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	last.SetNamespace(c.Namespace)
	last.SetGenerateName("without-owner-")
	last.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "none", UID: "none"}})
	if err := c.Create(c.T.Context(), last); err != nil {
		c.T.Fatal(err)
	}
	c.gone("v1", "ConfigMap", last.GetName())
}

// heldWatches delays what the watches of a resource deliver while it is locked. It
// records the answers to deletions of an Instance's ConfigMaps, but not of those of the
// group, which are deleted at any time, and that single objects are read.
type heldWatches struct {
	sync.RWMutex
	resource string
	deleted  chan int
	read     chan struct{}
}

// wrap returns the round tripper of one of the controller's clients.
func (h *heldWatches) wrap(next http.RoundTripper) http.RoundTripper {
	return apitest.RoundTripper(func(request *http.Request) (*http.Response, error) { return h.roundTrip(next, request) })
}

func (h *heldWatches) roundTrip(next http.RoundTripper, request *http.Request) (*http.Response, error) {
	response, err := next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	switch path := request.URL.Path; {
	case request.URL.Query().Has("watch") && strings.HasSuffix(path, "/"+h.resource):
		response.Body = &heldBody{response.Body, h}
	case h.read != nil && request.Method == http.MethodGet && strings.HasSuffix(path, "/"+h.resource+"/cfg-cam"):
		h.read <- struct{}{}
	}
	if h.deleted != nil && request.Method == http.MethodDelete && strings.Contains(request.URL.Path, "/configmaps/cfg-cam-") {
		h.deleted <- response.StatusCode
	}
	return response, nil
}

type heldBody struct {
	io.ReadCloser
	watches *heldWatches
}

func (b *heldBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.watches.RLock()
	defer b.watches.RUnlock()
	return n, err
}

// A controller whose watch is late does not delete what was orphaned or changed.
func TestStaleObjectsAreLeftToGarbageCollection(t *testing.T) {
	c := newCluster(t)
	c.stop()
	watches := &heldWatches{resource: "configmaps", deleted: make(chan int, 100)}
	c.Config = rest.CopyConfig(c.Config)
	c.Config.Wrap(watches.wrap)
	c.runWith(controller.Options{Workers: 1})
	c.Apply(departing)
	cam := c.Instance("cfg", "cfg-cam", nil)
	c.condition(cam, v0.ConditionApplied, metav1.ConditionTrue, v0.ReasonApplied)
	c.settled()

	watches.Lock()
	defer watches.Unlock()
	for _, name := range []string{"cfg-cam-a", "cfg-cam-b"} { // as the garbage collector does it
		c.merge("ConfigMap", name, `{"metadata":{"ownerReferences":[]}}`)
	}
	c.delete(cam)
	for range 2 {
		if code := <-watches.deleted; code != http.StatusConflict {
			t.Errorf("a deletion is answered with %d, want %d", code, http.StatusConflict)
		}
	}
	c.left("cfg-cam-a", "it was orphaned")
	c.left("cfg-cam-b", "it was orphaned")
}
