package slots

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/kubebox/clustertest"
)

// An Instance that somebody deletes while a container has its slot is created again, and
// the slot is owned again before another node's Pod can have it.
func TestDeletedInstance(t *testing.T) {
	clustertest.Full(t)
	t.Parallel()
	w := newWorld(t)
	instance := w.configuration("deleted", 1, "deleted0")["deleted0"]
	for _, level := range levels {
		w.step(level.name, func(w *world) {
			stop := w.monitorDoubles()
			resource := level.resource("deleted", instance)
			u := w.started("holder", node1, resource)
			// The rival's Pods may be rejected while the Instance is new, but none runs.
			w.deployment("rival", 1, podSpec(node2, nil, container{name: "app", resources: limit(resource, 1)}))
			for range 3 {
				before := w.get("Instance", instance).Metadata.UID
				w.delete("Instance", instance)
				w.eventually("the Instance is created again", func() string {
					again, found := w.find("Instance", instance)
					if !found || again.Metadata.UID == before {
						return "not yet"
					}
					return ""
				})
				w.awaitUsage(instance, level.owner(node1))
				w.awaitInstances("deleted", []string{"deleted0"}, node1, node2)
			}
			if !u.alive() {
				w.t.Errorf("%v has ended", u)
			}
			if users := w.usersOf("deleted0"); len(users) != 1 || users[0].pid != u.pid {
				w.t.Errorf("containers with the device: %v, want only %v", users, u)
			}
			w.delete("Pod", "holder")
			w.gone("holder")
			w.readyPod("rival", "")
			w.awaitUsage(instance, level.owner(node2))
			stop()
			w.end("rival", "app=rival")
			w.awaitUsage(instance)
		})
	}
}

// Owners that somebody writes by hand: a slot in use gets its owner back, which an Event
// tells, and a slot without a container becomes free.
func TestEditedDeviceUsage(t *testing.T) {
	clustertest.Full(t)
	t.Parallel()
	w := newWorld(t)
	instance := w.configuration("edited", 2, "edited0")["edited0"]
	for _, level := range levels {
		w.step(level.name, func(w *world) {
			u := w.started("holder", node1, level.resource("edited", instance))
			owner := level.owner(node1)
			slot := ""
			for name, have := range w.get("Instance", instance).Spec.DeviceUsage {
				if have == owner {
					slot = name
				}
			}
			other := instance + "-0"
			if slot == other {
				other = instance + "-1"
			}
			for _, edit := range []struct{ what, usage string }{
				{"the owner is emptied", fmt.Sprintf("%s: \"\"", slot)},
				{"the slot is removed", fmt.Sprintf("%s: null", slot)},
				{"a free slot gets this node as its owner", fmt.Sprintf("%s: node1", other)},
				{"a free slot gets another node as its owner", fmt.Sprintf("%s: node2", other)},
				{"a free slot gets an id of this node as its owner", fmt.Sprintf("%s: \"C:7:node1\"", other)},
			} {
				w.step(edit.what, func(w *world) {
					w.patch("Instance", instance, "{spec: {deviceUsage: {"+edit.usage+"}}}")
					took := w.eventually("deviceUsage is corrected", func() string {
						usage := w.get("Instance", instance).Spec.DeviceUsage
						if usage[slot] != owner || usage[other] != "" {
							return fmt.Sprint(usage)
						}
						return ""
					})
					w.t.Logf("corrected after %v", took.Round(time.Millisecond))
				})
			}
			w.eventually("an Event", func() string {
				if w.kubectl("get", "events", "--field-selector=reason=SlotRestored,involvedObject.name="+instance, "--output=name") == "" {
					return "there is none"
				}
				return ""
			})
			if !u.alive() {
				w.t.Errorf("%v has ended", u)
			}
			w.consistent()
			w.delete("Pod", "holder")
			w.gone("holder")
			w.awaitUsage(instance)
		})
	}
}

// A capacity that shrinks below the number of containers gives no further slot until
// enough of them have ended. One that grows does at once.
func TestEditedCapacity(t *testing.T) {
	clustertest.Full(t)
	t.Parallel()
	w := newWorld(t)
	instance := w.configuration("resized", 5, "resized0")["resized0"]
	for _, level := range levels {
		w.step(level.name, func(w *world) {
			resource := level.resource("resized", instance)
			var users []user
			for i, node := range []string{node1, node1, node2} {
				users = append(users, w.started(fmt.Sprintf("holder-%d", i), node, resource))
			}
			owners := w.usage(instance)
			w.describeDevices("resized", 2, "resized0")
			w.capacity(instance, 2)
			w.eventually("the nodes offer nothing more", func() string {
				for node, used := range map[string]int{node1: 2, node2: 1} {
					if offered, _ := strconv.Atoi(w.get("Node", node).Status.Allocatable["akri.sh/"+resource]); offered > used {
						return fmt.Sprintf("%s offers %d, and %d are in use", node, offered, used)
					}
				}
				return ""
			})
			w.pod("next", node1, resource)
			w.pending("next")
			if got := w.usage(instance); !slices.Equal(got, owners) {
				w.t.Errorf("owners %q, want %q as before", got, owners)
			}
			for _, u := range users {
				if !u.alive() {
					w.t.Errorf("%v has ended", u)
				}
			}
			// Two of two slots are still used. (On the same node, the next Pod could have the
			// slot of the former: the node owns it already.)
			w.delete("Pod", "holder-2")
			w.gone("holder-2")
			w.eventually("the slot is free", func() string {
				if got := w.usage(instance); len(got) != 2 {
					return fmt.Sprint(got)
				}
				return ""
			})
			w.throughout(3*time.Second, "the capacity holds", func() string {
				if _, runs := w.of("next")["app"]; runs || len(w.usage(instance)) > 2 {
					return fmt.Sprintf("%s; owners %q", w.describe("next"), w.usage(instance))
				}
				return ""
			})
			w.describeDevices("resized", 5, "resized0")
			w.capacity(instance, 5)
			w.container("next", "app")
			w.consistent()
			if failed := w.failedPods(); failed != "" {
				w.t.Error(failed)
			}
			for _, name := range []string{"holder-0", "holder-1", "next"} {
				w.delete("Pod", name)
			}
			for _, name := range []string{"holder-0", "holder-1", "next"} {
				w.gone(name)
			}
			w.awaitUsage(instance)
		})
	}
}

// capacity waits until an Instance has a capacity.
func (w *world) capacity(instance string, count int) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("capacity %d", count), func() string {
		if got := w.get("Instance", instance).Spec.Capacity; got != count {
			return fmt.Sprint(got)
		}
		return ""
	})
}

// racesVariable is how many times two nodes race for a slot.
const racesVariable = "AKRI_E2E_RACES"

// Pods on both nodes race for the only slot, through the same resource or through
// different ones: one container runs, and the other node offers nothing from then on.
func TestLastSlot(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]map[string]resourceLevel{
		"Instance":      {node1: levels[0], node2: levels[0]},
		"Configuration": {node1: levels[1], node2: levels[1]},
		"mixed":         {node1: levels[0], node2: levels[1]},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			configuration := "race-" + strings.ToLower(name)
			device := configuration + "-0"
			r := race{world: w, of: of, configuration: configuration, device: device}
			r.instance = w.configuration(configuration, 1, device)[device]
			stop := w.monitor()
			r.offered()
			for round := 0; round < countOf(t, racesVariable, 3)+r.lost; round++ {
				r.run(round)
			}
			stop()
			w.t.Logf("%d losers were rejected by the kubelet, %d remained Pending; wins: %v; the loser's status lacks the device after: %s",
				r.rejected, r.pending, r.wins, distribution(r.took))
		})
	}
}

// maxLost is how many races may end without a winner.
const maxLost = 3

// race lets Pods on both nodes race for the only slot of a device.
type race struct {
	*world
	of                              map[string]resourceLevel // by node
	configuration, instance, device string

	rejected, pending int
	lost              int // races without a winner
	wins              map[string]int
	took              []time.Duration
}

func (r *race) resource(node string) string { return r.of[node].resource(r.configuration, r.instance) }

// offered waits until both nodes offer the slot.
func (r *race) offered() {
	r.t.Helper()
	for node := range r.of {
		r.allocatable(node, r.resource(node), 1)
	}
}

// run is one race. Both may lose: a node that gets no answer to its claim in time, as on a busy
// machine, rejects the Pod.
func (r *race) run(round int) {
	r.t.Helper()
	names := map[string]string{node1: fmt.Sprintf("racer-%d-1", round), node2: fmt.Sprintf("racer-%d-2", round)}
	for node, name := range names {
		r.pod(name, node, r.resource(node))
	}
	var winner user
	r.eventually("a winner", func() string {
		if users := r.usersOf(r.device); len(users) == 1 {
			winner = users[0]
			return ""
		}
		if r.get("Pod", names[node1]).Status.Phase == "Failed" && r.get("Pod", names[node2]).Status.Phase == "Failed" {
			return ""
		}
		return fmt.Sprint(r.usersOf(r.device))
	})
	if winner.node == "" {
		if r.lost++; r.lost > maxLost {
			r.t.Fatalf("%d races without a winner: %s; %s", r.lost, r.describe(names[node1]), r.describe(names[node2]))
		}
		r.end(names)
		return
	}
	loser := node1
	if winner.node == node1 {
		loser = node2
	}
	began := time.Now()
	r.allocatable(loser, r.resource(loser), 0)
	r.took = append(r.took, time.Since(began))
	if r.wins == nil {
		r.wins = map[string]int{}
	}
	r.wins[winner.node]++
	if r.get("Pod", names[loser]).Status.Phase == "Failed" {
		r.rejected++ // both were bound before the first claim
	} else {
		r.pending++
	}
	r.awaitUsage(r.instance, r.of[winner.node].owner(winner.node))
	r.end(names)
}

// end deletes the Pods of a race, and waits until the slot is free and offered.
func (r *race) end(names map[string]string) {
	r.t.Helper()
	for _, name := range names {
		r.delete("Pod", name)
	}
	for _, name := range names {
		r.gone(name)
	}
	r.awaitUsage(r.instance)
	r.offered()
}

// monitorDoubles is like monitor, but only checks that no device has more containers
// than slots: while an Instance is deleted and created again, it has no owners.
func (w *world) monitorDoubles() (stop func()) {
	return w.monitorThat(func(violation string) bool { return strings.HasPrefix(violation, "more containers") })
}
