package agent_test

import (
	"strings"
	"testing"
	"time"

	v0 "akri.sh/akri/api/v0"
)

// The Instances of a Configuration may have the name of another Configuration. In two
// namespaces, the older of both is served.
func TestConfigurationNamedLikeAnInstance(t *testing.T) {
	victim, other := newWorld(t), newWorld(t)
	n := victim.node("n")
	n.startAgent()
	n.startHandler(true)
	name := v0.InstanceName("victim", "foo0", "", true)
	neighbor := v0.InstanceName("victim", "foo1", "", true)
	victim.configure("victim", "descriptions: [foo0]", nil)
	victim.configure(neighbor, "descriptions: [foo1]", nil) // in the same namespace
	victim.awaitDevices("foo0", "foo1")
	time.Sleep(time.Second) // creationTimestamp has whole seconds
	other.configure(name, "descriptions: [bar0]", nil)
	other.eventually("it is not served", func() bool {
		failures := other.failures(name)
		return len(failures) == 1 && strings.Contains(failures[0].Message, victim.namespace+"/victim is older") &&
			strings.Contains(failures[0].Message, v0.ResourceName(name))
	})
	if len(other.instances()) != 0 || len(n.sink.of(other.namespace, name)) != 0 {
		t.Error("both are served")
	}
	victim.remove("victim")
	other.awaitDevices("bar0")
	other.eventually("the failure is gone", func() bool { return len(other.failures(name)) == 0 })
	time.Sleep(time.Second)                                 // creation times are in whole seconds
	victim.configure("victim", "descriptions: [foo0]", nil) // now it is the younger one
	victim.eventually("it is not served", func() bool {
		failures := victim.failures("victim")
		return len(failures) == 1 && strings.Contains(failures[0].Message, other.namespace+"/"+name+" is older")
	})
}
