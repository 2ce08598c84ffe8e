package observer

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"akri.sh/akri/agent/serve/kubelet"
	"akri.sh/akri/agent/serve/slots"
)

// called returns the metadata of a Pod.
func called(uid, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{UID: types.UID(uid), Namespace: "default", Name: name}
}

func TestAccount(t *testing.T) {
	const cam, door = "cam-1", "door-1"
	own := func(numbers ...int) []slots.Use {
		var uses []slots.Use
		for _, n := range numbers {
			uses = append(uses, slots.Use{Resource: "cam-1", ID: fmt.Sprintf("cam-1-%d", n)})
		}
		return uses
	}
	has := func(name, resource string, ids ...string) kubelet.Holding {
		return kubelet.Holding{Namespace: "default", Name: name, IDs: map[string][]string{resource: ids}}
	}
	wants := func(name string, counts map[string]int) podInfo {
		return podInfo{ObjectMeta: called(name, name), Requests: counts}
	}
	one := map[string]int{cam: 1}
	old := podInfo{ObjectMeta: called("p-old", "p"), Requests: one}
	for name, tc := range map[string]struct {
		reason            string
		own               []slots.Use
		listing           kubelet.Listing
		pods              []podInfo
		held, ended, open string
	}{
		"no pod and no listing": {
			reason: "no pod requests the resource, so no container can have the slot",
			own:    own(0), listing: kubelet.Listing{}, ended: "[cam-1-0]",
		},
		"listed": {
			reason: "the list shows which container has it",
			own:    own(0), listing: kubelet.Listing{has("p", cam, "cam-1-0")}, pods: []podInfo{wants("p", one)}, held: "[cam-1-0]",
		},
		"kubelet just started": {
			reason: "the list is empty and a pod requests the resource: it may have the slot",
			own:    own(0, 1), listing: kubelet.Listing{}, pods: []podInfo{wants("p", one)}, open: "[cam-1-0 cam-1-1]",
		},
		"one of two ended": {
			reason: "each pod that requests the resource is accounted for, so no container has the other slot",
			own:    own(0, 1), listing: kubelet.Listing{has("p", cam, "cam-1-1")},
			pods: []podInfo{wants("p", one)},
			held: "[cam-1-1]", ended: "[cam-1-0]",
		},
		"ended pod": {
			reason: "a pod that has ended need not be accounted for",
			own:    own(0), listing: kubelet.Listing{}, pods: []podInfo{{Requests: one, Terminated: true}}, ended: "[cam-1-0]",
		},
		"another resource": {
			reason: "only pods that request the same resource delay the decision",
			own:    own(0), listing: kubelet.Listing{}, pods: []podInfo{wants("p", map[string]int{door: 1})}, ended: "[cam-1-0]",
		},
		"two of three shown": {
			reason: "a pod with fewer ids than it requests may have any slot of the node",
			own:    own(0, 1, 2), listing: kubelet.Listing{has("p", cam, "cam-1-0", "cam-1-1")},
			pods: []podInfo{wants("p", map[string]int{cam: 3})},
			held: "[cam-1-0 cam-1-1]", open: "[cam-1-2]",
		},
		"hidden in an init container": {
			reason: "the list never shows what a plain init container has",
			own:    own(0), listing: kubelet.Listing{}, pods: []podInfo{{Hidden: map[string]bool{cam: true}}}, open: "[cam-1-0]",
		},
		"successor of the same name": {
			reason: "a force-deleted pod of a StatefulSet still runs while its successor is listed under its name",
			own:    own(0, 1), listing: kubelet.Listing{has("p", cam, "cam-1-1")},
			pods: []podInfo{wants("p", one), old},
			held: "[cam-1-1]", open: "[cam-1-0]",
		},
		"served by DRA": {
			reason: "the pod has a claim for its extended resources, so its request is no id of the device plugin",
			own:    own(0), listing: kubelet.Listing{{Namespace: "default", Name: "p", DRA: true}},
			pods: []podInfo{wants("p", one)}, ended: "[cam-1-0]",
		},
		"one resource served by DRA": {
			reason: "the resource with an id in the list is not",
			own:    own(0), listing: kubelet.Listing{
				{Namespace: "default", Name: "p", DRA: true, IDs: map[string][]string{cam: {"cam-1-1"}}},
			},
			pods: []podInfo{wants("p", map[string]int{cam: 2, door: 1})}, held: "[cam-1-1]", open: "[cam-1-0]",
		},
		"successor served by DRA": {
			reason: "the pod of the same name that still runs may be served by the device plugin",
			own:    own(0), listing: kubelet.Listing{{Namespace: "default", Name: "p", DRA: true}},
			pods: []podInfo{wants("p", one), old}, open: "[cam-1-0]",
		},
		"ids of a Configuration": {
			reason:  "virtual ids are listed like slots",
			listing: kubelet.Listing{has("p", "cam", "0", "1")}, held: "[0 1]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := shown(tc.listing).account(tc.listing, tc.pods)
			var held, ended, open []string
			for _, use := range o.Listed {
				held = append(held, use.ID)
			}
			for _, use := range tc.own {
				switch {
				case slices.Contains(o.Listed, use):
				case slices.Contains(o.Open, use.Resource):
					open = append(open, use.ID)
				default:
					ended = append(ended, use.ID)
				}
			}
			for _, part := range []struct {
				name string
				got  []string
				want string
			}{{"held", held, tc.held}, {"ended", ended, tc.ended}, {"open", open, tc.open}} {
				if got := fmt.Sprint(part.got); got != cmp.Or(part.want, "[]") {
					t.Errorf("%s: %s\n got %s\nwant %s", tc.reason, part.name, got, part.want)
				}
			}
		})
	}
}

// TestUnreserved checks which open resources an Allocate waits for. What the kubelet keeps
// for a Pod is never part of a call: a call that waited would wait until that Pod ends.
func TestUnreserved(t *testing.T) {
	const cam = "cam-1"
	pod := func(uid string) podInfo { return podInfo{ObjectMeta: called(uid, "p")} }
	hidden, waiting, both := pod("1"), pod("2"), pod("3")
	hidden.Hidden = map[string]bool{cam: true}
	waiting.Requests, waiting.Waiting = map[string]int{cam: 1}, true
	both.Hidden, both.Requests = hidden.Hidden, map[string]int{cam: 1}
	listed := kubelet.Listing{{Namespace: "default", Name: "p"}}
	for name, tc := range map[string]struct {
		listing kubelet.Listing
		pods    []podInfo
		want    string
	}{
		"hidden, and the pod is listed":                       {listed, []podInfo{hidden}, "[]"},
		"hidden, and the pod was deleted by force":            {kubelet.Listing{}, []podInfo{hidden}, "[cam-1]"},
		"hidden, and the successor of a deleted pod is there": {listed, []podInfo{hidden, pod("4")}, "[cam-1]"},
		"hidden, and such a successor waits":                  {listed, []podInfo{hidden, waiting}, "[cam-1]"},
		"the pod waits":                                       {listed, []podInfo{waiting}, "[]"},
		"hidden, and an id of an app container is missing":    {listed, []podInfo{both}, "[cam-1]"},
	} {
		got := shown(tc.listing).account(tc.listing, tc.pods)
		if fmt.Sprint(got.Unreserved) != tc.want {
			t.Errorf("%s: unreserved: got %v, want %s", name, got.Unreserved, tc.want)
		}
		if fmt.Sprint(got.Open) != "[cam-1]" {
			t.Errorf("%s: open: got %v, want [cam-1]: nothing may be released", name, got.Open)
		}
	}
}

func TestDuplicates(t *testing.T) {
	has := func(name, resource string, ids ...string) kubelet.Holding {
		return kubelet.Holding{Namespace: "default", Name: name, IDs: map[string][]string{resource: ids}}
	}
	got := shown(kubelet.Listing{
		has("a", "cam-1", "cam-1-0", "cam-1-1"), has("b", "cam-1", "cam-1-2", "cam-1-2"), has("c", "cam-1", "cam-1-0"),
		has("d", "cam", "0"), has("e", "door", "0"),
	}).Duplicates
	want := "[{{cam-1 cam-1-0} [default/a default/c]} {{cam-1 cam-1-2} [default/b]}]"
	if fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestHidden(t *testing.T) {
	cam := map[string]bool{"cam": true}
	got := Observation{}.account(kubelet.Listing{}, []podInfo{
		{ObjectMeta: called("1", "b"), Hidden: map[string]bool{"cam": true, "cam-1": true}},
		{ObjectMeta: called("2", "a"), Hidden: cam}, {ObjectMeta: called("3", "ended"), Hidden: cam, Terminated: true},
		{ObjectMeta: called("4", "waiting"), Hidden: cam, Waiting: true}, {ObjectMeta: called("5", "none")},
	})
	if want := "[{cam default/a} {cam default/b} {cam-1 default/b}]"; fmt.Sprint(got.Hidden) != want || !got.Accounted {
		t.Errorf("got %v, want %s", got, want)
	}
	if listOnly := shown(kubelet.Listing{}); listOnly.Accounted {
		t.Error("a list without the Pods shows what init containers have")
	}
}
