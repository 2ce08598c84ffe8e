package publish

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"akri.sh/akri/agent/discover/streams"
	v0 "akri.sh/akri/api/v0"
)

// Each step is a pass of the publisher at a time, in seconds.
type awaitedStep struct {
	at        int
	listed    int // 0 for never
	unsettled bool
	grace     int    // until when local devices are kept, 0 for none
	unclaimed string // the Instances without a device; "b!" is being deleted, "b+" is shared
	want      string // those that are kept, "-", those that are gone, and "@" with the next time
}

func TestAwaited(t *testing.T) {
	door, other := types.NamespacedName{Namespace: "plant", Name: "door"}, types.NamespacedName{Namespace: "plant", Name: "other"}
	for name, steps := range map[string][]awaitedStep{
		"before the first lists": {
			{at: 1, unsettled: true, unclaimed: "b a c!", want: "a b -"},
			{at: 500, unsettled: true, listed: 2, unclaimed: "a", want: "a -"},
		},
		"the first lists": {
			{at: 1, unsettled: true, unclaimed: "a b", want: "a b -"},
			{at: 10, listed: 10, unclaimed: "b a", want: "a b - @100"},
			{at: 99, listed: 10, unclaimed: "a b", want: "a b - @100"},
			{at: 100, listed: 10, unclaimed: "a b", want: "- a b"},
		},
		"no endpoint sends a first list": {
			{at: 1, unsettled: true, unclaimed: "a", want: "a -"},
			{at: 300, unclaimed: "a", want: "- a"},
		},
		"a device is reported, and then gone": {
			{at: 10, listed: 10, unclaimed: "a b", want: "a b - @100"},
			{at: 20, listed: 10, unclaimed: "b", want: "b - @100"},
			{at: 30, listed: 10, unclaimed: "a b", want: "b - a @100"},
		},
		"a handler restarts": {
			{at: 10, listed: 10, want: "-"},
			{at: 500, listed: 10, want: "-"},
			{at: 510, listed: 510, unclaimed: "a", want: "a - @600"},
			{at: 600, listed: 510, unclaimed: "a", want: "- a"},
		},
		"a device is gone before a handler restarts": {
			{at: 10, listed: 10, want: "-"},
			{at: 500, listed: 10, unclaimed: "a", want: "- a"},
			{at: 510, listed: 510, unclaimed: "a b", want: "b - a @600"},
		},
		"a handler restarts again and again": {
			{at: 10, listed: 10, unclaimed: "a", want: "a - @100"},
			{at: 60, listed: 60, unclaimed: "a b", want: "a b - @100"},
			{at: 100, listed: 99, unclaimed: "a b", want: "b - a @150"},
			{at: 150, listed: 149, unclaimed: "a b", want: "- a b"},
		},
		"a device is away": {
			{at: 10, listed: 5, grace: 15, want: "-"},
			{at: 20, listed: 5, grace: 25, unclaimed: "a b+", want: "a - b @25"},
			{at: 24, listed: 5, grace: 29, unclaimed: "a", want: "a - @25"},
			{at: 25, listed: 5, grace: 29, unclaimed: "a", want: "- a"},
		},
		"a device is away, and again": {
			{at: 20, listed: 5, grace: 25, unclaimed: "a", want: "a - @95"},
			{at: 22, listed: 5, grace: 27, want: "-"},
			{at: 90, listed: 5, grace: 91, unclaimed: "a", want: "a - @91"},
		},
		"a handler is gone, and its devices have had their grace": {
			{at: 10, listed: 5, grace: 55, want: "-"},
			{at: 60, listed: 5, grace: 55, unclaimed: "a", want: "- a"},
		},
		"a first list, and a grace that is longer": {
			{at: 10, listed: 10, grace: 310, unclaimed: "a b+", want: "a b - @100"},
			{at: 100, listed: 10, grace: 310, unclaimed: "a b+", want: "a - b @310"},
		},
		"an Instance is being deleted": {
			{at: 10, listed: 10, unclaimed: "a! b", want: "b - @100"},
			{at: 100, listed: 10, unclaimed: "a!", want: "- a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := awaited{allowance: streams.ReturnAllowance}
			for _, step := range steps {
				if got := a.describe(door, step); got != step.want {
					t.Errorf("at %d: got %q, want %q", step.at, got, step.want)
				}
			}
			if got := a.describe(other, awaitedStep{at: 1, unclaimed: "x"}); got != "- x" {
				t.Errorf("another Configuration: got %q", got)
			}
		})
	}
}

func (a *awaited) describe(configuration types.NamespacedName, step awaitedStep) string {
	snapshot := streams.Snapshot{Settled: !step.unsettled}
	if step.listed != 0 {
		snapshot.Listed = time.Unix(int64(step.listed), 0)
	}
	if step.grace != 0 {
		snapshot.Grace = time.Unix(int64(step.grace), 0)
	}
	var unclaimed []*v0.Instance
	for name := range strings.FieldsSeq(step.unclaimed) {
		instance := &v0.Instance{}
		instance.Name = strings.TrimRight(name, "!+")
		instance.Spec.Shared = strings.HasSuffix(name, "+")
		if strings.HasSuffix(name, "!") {
			instance.DeletionTimestamp = &metav1.Time{Time: now}
		}
		unclaimed = append(unclaimed, instance)
	}
	kept, gone, next := a.split(configuration, unclaimed, snapshot, time.Unix(int64(step.at), 0))
	var words []string
	for _, list := range [][]*v0.Instance{kept, gone} {
		for _, instance := range list {
			words = append(words, instance.Name)
		}
		words = append(words, "-")
	}
	words = slices.Delete(words, len(words)-1, len(words))
	if !next.IsZero() {
		words = append(words, fmt.Sprint("@", next.Unix()))
	}
	return strings.Join(words, " ")
}

// What a first list lacks is offered as offline, and deleted later without an event.
func TestAwaitedInstancesAreDeletedLater(t *testing.T) {
	b := newBench(t)
	b.publish(b.publisher("node-a"), camera)
	p := b.publisher("node-a")
	p.awaited.allowance = time.Second
	snapshot := streams.Snapshot{Settled: true, Listed: time.Now()}
	result, err := p.Publish(t.Context(), b.configuration, snapshot)
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Devices) != 1 || result.Devices[0].Online || !result.Next.Equal(snapshot.Listed.Add(time.Second)) {
		t.Fatalf("published %+v, again at %s, want the camera offline for a second", result.Devices, result.Next)
	}
	name := result.Devices[0].Instance.Name
	b.eventually("the Instance is deleted", func() bool {
		if result, err = p.Publish(t.Context(), b.configuration, snapshot); err != nil {
			t.Fatal(err)
		}
		return b.object(name) == nil && len(result.Devices) == 0
	})
}

// What is known of devices that may come back goes with their Configuration.
func TestWithdrawForgetsAwaitedInstances(t *testing.T) {
	b := newBench(t)
	b.publish(b.publisher("node-a"), camera)
	p := b.publisher("node-a")
	if _, err := p.Publish(t.Context(), b.configuration, streams.Snapshot{Settled: true, Listed: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if _, found := p.awaited.absent.Load(b.name()); !found {
		t.Fatal("the camera is not awaited")
	}
	if _, err := p.Withdraw(t.Context(), b.name(), true); err != nil {
		t.Fatal(err)
	}
	if _, found := p.awaited.absent.Load(b.name()); found {
		t.Error("an Instance is awaited for a Configuration that was withdrawn")
	}
}
