package controller_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
)

// versioned returns a Configuration whose objects the test makes ready, for each
// version separately.
func versioned(version, rollout string) string {
	return `
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: cfg}
spec:
  discoveryHandler: {name: debugEcho}` + rollout + `
  instanceBrokerResources:
  - apiVersion: v1
    kind: ConfigMap
    metadata:
      name: "{{INSTANCE_NAME}}"
      annotations: {akri.sh/ready-when: "has(self.data.ready) && self.data.ready == self.data.version"}
    data: {version: ` + version + `}
`
}

const twoAtATime = `
  rollout: {maxUnavailable: 2}`

// fleet holds five Instances whose objects the test makes ready.
type fleet struct {
	*cluster
	instances []*v0.Instance
}

func newFleet(c *cluster) *fleet {
	f := &fleet{cluster: c}
	for i := range 5 {
		f.instances = append(f.instances, c.Instance("cfg", fmt.Sprintf("cfg-%d", i), nil))
	}
	for _, instance := range f.instances {
		f.ready(instance.Name, "a")
	}
	c.ready(configuration("cfg"))
	return f
}

func (f *fleet) ready(name, version string) {
	f.T.Helper()
	object := f.exists("v1", "ConfigMap", name)
	f.patch(object, `{"data":{"ready":"`+version+`"}}`)
}

// changed returns the names of those that have a version and are not ready with it.
func (f *fleet) changed(version string) (changed, settled []string) {
	f.T.Helper()
	for _, instance := range f.instances {
		data := f.object("v1", "ConfigMap", instance.Name).Object["data"].(map[string]any)
		switch {
		case data["version"] == version && data["ready"] == version:
			settled = append(settled, instance.Name)
		case data["version"] == version:
			changed = append(changed, instance.Name)
		}
	}
	return changed, settled
}

// await waits until that many have a version and are not ready with it.
func (f *fleet) await(version string, count int) {
	f.T.Helper()
	f.Eventually(fmt.Sprintf("%d of version %s", count, version), func() string {
		if changed, _ := f.changed(version); len(changed) != count {
			return fmt.Sprintf("changed: %v", changed)
		}
		return ""
	})
}

func TestRolloutInTurn(t *testing.T) {
	c := newCluster(t)
	c.Apply(versioned("a", twoAtATime))
	f := newFleet(c)
	c.Apply(versioned("b", twoAtATime))

	for done := range 5 {
		var changed []string
		want := min(2, 5-done)
		c.Eventually(fmt.Sprintf("%d changed after %d are ready", want, done), func() string {
			var settled []string
			changed, settled = f.changed("b")
			if len(changed) > 2 {
				t.Fatalf("%v are changed and not ready; 2 may be", changed)
			}
			if len(changed) != want || len(settled) != done {
				return fmt.Sprintf("changed: %v, ready: %v", changed, settled)
			}
			return ""
		})
		if done == 0 { // no other has changed, and they are reported as waiting, not as failing
			c.condition(configuration("cfg"), v0.ConditionApplied, metav1.ConditionFalse, v0.ReasonRolloutWaiting, "3 of 5 Instances are waiting",
				"until these are ready", "Instance "+changed[0]+": ConfigMap "+changed[0]+": ")
			c.settled()
			if again, _ := f.changed("b"); len(again) != 2 {
				t.Fatalf("%v are changed and not ready; 2 may be", again)
			}
			for _, instance := range f.instances {
				if !strings.Contains(strings.Join(changed, " "), instance.Name) {
					c.condition(instance, v0.ConditionApplied, metav1.ConditionFalse, v0.ReasonRolloutWaiting, "spec.rollout.maxUnavailable")
					c.ready(instance)
				}
			}
		}
		f.ready(changed[0], "b")
	}
	c.ready(configuration("cfg"))
}

// A restart in the middle of a rollout lets no more Instances through.
func TestRolloutAcrossRestart(t *testing.T) {
	c := newCluster(t)
	c.Apply(versioned("a", twoAtATime))
	f := newFleet(c)
	c.Apply(versioned("b", twoAtATime))
	f.await("b", 2)
	c.settled()
	c.stop()
	c.run()
	c.Apply(versioned("c", twoAtATime)) // repairs the broken ones; the others still wait
	f.await("c", 2)
	c.settled()
	changed, _ := f.changed("c")
	if len(changed) != 2 {
		t.Errorf("%v are changed and not ready; 2 may be", changed)
	}
	// Without a limit, all of them pass.
	c.Apply(versioned("c", ""))
	f.await("c", 5)
}

// Invalid templates make nothing unavailable: the corrected ones still reach the
// Instances in turn.
func TestRolloutAfterBrokenTemplates(t *testing.T) {
	c := newCluster(t)
	c.Apply(versioned("a", twoAtATime))
	f := newFleet(c)
	c.Apply(versioned("b", twoAtATime))
	for _, instance := range f.instances { // the order does not matter: an Instance that is ready early does not wait
		f.ready(instance.Name, "b")
	}
	c.Eventually("all changed", func() string {
		if _, settled := f.changed("b"); len(settled) != 5 {
			return fmt.Sprintf("ready: %v", settled)
		}
		return ""
	})
	c.ready(configuration("cfg"))
	c.Apply(versioned(`"{{ NOTHING }}"`, twoAtATime))
	for _, instance := range f.instances {
		c.condition(instance, v0.ConditionApplied, metav1.ConditionFalse, v0.ReasonInvalidTemplate)
	}
	c.Apply(versioned("c", twoAtATime))
	f.await("c", 2)
	c.settled()
	if changed, _ := f.changed("c"); len(changed) != 2 {
		t.Errorf("%v are changed and not ready; 2 may be", changed)
	}
}

// A rollout limit must not keep the objects of a device that no node sees any more: its
// containers have the slots, and the Instance stays until they are free.
func TestDepartedDeviceDoesNotWaitForARollout(t *testing.T) {
	c := newCluster(t)
	c.Apply(`
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: cfg}
spec:
  discoveryHandler: {name: debugEcho}
  rollout: {maxUnavailable: 1}
  instanceBrokerResources:
  - apiVersion: v1
    kind: ConfigMap
    metadata:
      name: "{{INSTANCE_NAME}}-a"
      annotations: {akri.sh/ready-when: "self.data.state == 'good'"}
    data: {state: "{{INSTANCE_PROPERTIES.STATE}}"}
`)
	good := c.Instance("cfg", "cfg-good", map[string]string{"STATE": "good"})
	c.ready(good)
	broken := c.Instance("cfg", "cfg-broken", map[string]string{"STATE": "bad"})
	c.condition(broken, v0.ConditionReady, metav1.ConditionFalse, v0.ReasonProgressing)
	c.patch(good, `{"spec":{"nodes":[],"deviceUsage":{"cfg-good-0":"node-a"}}}`)
	c.gone("v1", "ConfigMap", "cfg-good-a")
}

// An Instance that waits with some of its objects is ready with them, but not if one is new
// and waits to be created.
func TestObjectThatARolloutHasNotCreatedIsNotReady(t *testing.T) {
	c := newCluster(t)
	c.Apply(versioned("a", twoAtATime))
	f := newFleet(c)
	c.Apply(strings.TrimSpace(versioned("b", twoAtATime)) + `
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{INSTANCE_NAME}}-new"}}
`)
	c.condition(configuration("cfg"), v0.ConditionApplied, metav1.ConditionFalse, v0.ReasonRolloutWaiting, "3 of 5 Instances are waiting")
	waiting := 0
	for _, instance := range f.instances {
		if c.object("v1", "ConfigMap", instance.Name+"-new") != nil {
			continue
		}
		waiting++
		c.condition(instance, v0.ConditionReady, metav1.ConditionFalse, v0.ReasonRolloutWaiting, "1 object to be created")
	}
	if waiting != 3 {
		t.Errorf("%d Instances wait, want 3", waiting)
	}
}

// A Configuration that was edited is not ready before all Instances have been reconciled:
// what they report is about the earlier templates.
func TestEditedConfigurationIsNotReadyEarly(t *testing.T) {
	c := newCluster(t)
	c.Apply(versioned("a", ""))
	f := newFleet(c)
	held := make(chan struct{})
	release := sync.OnceFunc(func() { close(held) })
	defer release()
	c.respond(func(request *http.Request) *http.Response {
		if request.Method == http.MethodPatch && strings.Contains(request.URL.Path, "/configmaps/cfg-") {
			<-held
		}
		return nil
	})
	observed := func(generation int64) *metav1.Condition {
		cfg := configuration("cfg")
		c.Eventually(fmt.Sprintf("a status of generation %d", generation), func() string {
			if c.Read("cfg", cfg); cfg.Status.ObservedGeneration != generation {
				return fmt.Sprint(cfg.Status.ObservedGeneration)
			}
			return ""
		})
		return meta.FindStatusCondition(cfg.Status.Conditions, v0.ConditionReady)
	}
	c.Apply(versioned("b", ""))
	if ready := observed(2); ready.Status != metav1.ConditionFalse || !strings.HasPrefix(ready.Message, "5 of 5 Instances have not been") {
		t.Errorf("before any object is updated, Ready is %s: %s", ready.Status, ready.Message)
	}
	release()
	for _, instance := range f.instances {
		f.ready(instance.Name, "b")
	}
	c.ready(configuration("cfg"))

	c.Apply(versioned("b", twoAtATime)) // nothing of an Instance changes
	observed(3)
	c.ready(configuration("cfg"))
}
