package controller_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
)

// A handler that no node has is a condition of its own, while there is no device.
func TestMissingHandler(t *testing.T) {
	c := newCluster(t)
	c.Apply(`
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: cfg}
spec: {discoveryHandler: {name: udve}}`)
	configuration := &v0.Configuration{ObjectMeta: metav1.ObjectMeta{Name: "cfg"}}
	c.fail("cfg", v0.DiscoveryFailure{Node: "a", Handler: "udve", Message: v0.MessageHandlerMissing},
		v0.DiscoveryFailure{Node: "b", Handler: "udve", Message: v0.MessageHandlerMissing})
	c.condition(configuration, v0.ConditionDiscovering, metav1.ConditionFalse, v0.ReasonHandlerMissing,
		"no discovery handler udve has registered on 2 of 2 nodes; deploy it")
	c.condition(configuration, v0.ConditionReady, metav1.ConditionFalse, v0.ReasonNoInstances, "see condition Discovering")

	c.fail("cfg", v0.DiscoveryFailure{Node: "a", Handler: "udve", Message: v0.MessageHandlerMissing},
		v0.DiscoveryFailure{Node: "b", Handler: "udve@/udve.sock", Message: "no answer"})
	c.condition(configuration, v0.ConditionDiscovering, metav1.ConditionFalse, v0.ReasonDiscoveryFailed,
		"node b, handler udve@/udve.sock: no answer")

	c.fail("cfg", v0.DiscoveryFailure{Node: "a", Handler: "udve", Message: v0.MessageHandlerMissing})
	c.Instance("cfg", "cfg-1", nil)
	c.condition(configuration, v0.ConditionDiscovering, metav1.ConditionTrue, v0.ReasonDiscovering)
}

// fail sets the failures that agents report.
func (c *cluster) fail(name string, failures ...v0.DiscoveryFailure) {
	c.T.Helper()
	c.Eventually("the failures are written", func() string {
		var configuration v0.Configuration
		c.Read(name, &configuration)
		configuration.Status.DiscoveryFailures = failures
		if err := c.Status().Update(c.T.Context(), &configuration); err != nil {
			return err.Error() // the controller was first
		}
		return ""
	})
}
