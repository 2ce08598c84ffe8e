package controller_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller"
	"akri.sh/akri/internal/apitest"
)

// versionedPair renders a ConfigMap with a version for each device, and one for all.
const versionedPair = `
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: cfg, finalizers: [example.com/held]}
spec:
  discoveryHandler: {name: debugEcho}
  instanceBrokerResources:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{INSTANCE_NAME}}"}, data: {version: one}}
  configurationBrokerResources:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: group}, data: {version: one}}
`

// While a finalizer of another client keeps a Configuration that was deleted,
// nothing is created, changed or repaired for it; when it goes, everything goes.
func TestTerminatingConfiguration(t *testing.T) {
	c := newClusterWith(t, controller.Options{Workers: 1})
	apitest.StartGarbageCollector(t)
	c.Apply(versionedPair)
	cam := c.Instance("cfg", "cfg-cam", nil)
	c.condition(cam, v0.ConditionApplied, metav1.ConditionTrue, v0.ReasonApplied)
	c.exists("v1", "ConfigMap", "group")
	c.ready(configuration("cfg"))
	c.settled()

	held := &v0.Configuration{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "cfg"}}
	c.delete(held)
	c.Apply(strings.ReplaceAll(versionedPair, "version: one", "version: two"))
	c.Instance("cfg", "cfg-new", nil)
	c.merge("ConfigMap", "cfg-cam", `{"data":{"version":"edited"}}`)
	c.merge("ConfigMap", "group", `{"data":{"version":"edited"}}`)
	c.patch(cam, `{"spec":{"nodes":["node-b"]}}`)
	// The Instance of another Configuration is reconciled after all these events.
	c.Apply(strings.NewReplacer("name: cfg, finalizers: [example.com/held]", "name: later", "name: group", "name: later-group").
		Replace(versionedPair))
	later := c.Instance("later", "later-1", nil)
	c.ready(later, configuration("later"))
	c.settled()
	for _, name := range []string{"cfg-cam", "group"} {
		if version := c.exists("v1", "ConfigMap", name).Object["data"].(map[string]any)["version"]; version != "edited" {
			t.Errorf("ConfigMap %s is repaired: its version is %v", name, version)
		}
	}
	if c.object("v1", "ConfigMap", "cfg-new") != nil {
		t.Error("an object is created for a new device")
	}

	c.Read("cfg", held)
	held.Finalizers = nil
	if err := c.Update(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"cfg-cam", "group"} {
		c.gone("v1", "ConfigMap", name)
	}
	c.left("later-1", "its Configuration is still there")
}

// A Configuration that is deleted and created again at once keeps nothing of the
// former one: its devices' objects are created again.
func TestConfigurationCreatedAgainAtOnce(t *testing.T) {
	c := newCluster(t)
	apitest.StartGarbageCollector(t)
	text := strings.Replace(versionedPair, ", finalizers: [example.com/held]", "", 1)
	for range 3 {
		c.Apply(text)
		cam := c.Instance("cfg", "cfg-cam", nil) // by agents, which see the new Configuration
		c.Eventually("the objects of the new Configuration", func() string {
			var now v0.Configuration
			c.Read("cfg", &now)
			group, device := c.object("v1", "ConfigMap", "group"), c.object("v1", "ConfigMap", "cfg-cam")
			if group == nil || !metav1.IsControlledBy(group, &now) || device == nil || !metav1.IsControlledBy(device, cam) {
				return "they do not exist"
			}
			return ""
		})
		c.ready(configuration("cfg"))
		for _, object := range []client.Object{cam, configuration("cfg")} {
			object.SetNamespace(c.Namespace)
			c.delete(object)
		}
	}
}
