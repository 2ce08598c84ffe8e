package observer

import (
	"fmt"
	"testing"

	"akri.sh/akri/agent/serve/kubelet"
	"akri.sh/akri/agent/serve/slots"
)

func TestAccount(t *testing.T) {
	const cam, door = "akri.sh/cam-1", "akri.sh/door-1"
	own := func(numbers ...int) []slots.Ref {
		var refs []slots.Ref
		for _, n := range numbers {
			refs = append(refs, slots.Ref{Instance: "cam-1", Slot: n})
		}
		return refs
	}
	has := func(name, resource string, ids ...string) kubelet.Holding {
		return kubelet.Holding{Namespace: "default", Name: name, IDs: map[string][]string{resource: ids}}
	}
	wants := func(name string, counts map[string]int) podInfo {
		return podInfo{UID: name, Namespace: "default", Name: name, Requests: counts}
	}
	one := map[string]int{cam: 1}
	for name, tc := range map[string]struct {
		reason            string
		own               []slots.Ref
		listings          []kubelet.Listing
		pods              []podInfo
		held, ended, open string
	}{
		"no pod and no listing": {
			reason: "no pod requests the resource, so no container can have the slot",
			own:    own(0), listings: []kubelet.Listing{{}}, ended: "[cam-1-0]",
		},
		"listed": {
			reason: "the list shows which container has it",
			own:    own(0), listings: []kubelet.Listing{{has("p", cam, "cam-1-0")}}, pods: []podInfo{wants("p", one)}, held: "[cam-1-0]",
		},
		"kubelet just started": {
			reason: "the list is empty and a pod requests the resource: it may have the slot",
			own:    own(0, 1), listings: []kubelet.Listing{{}}, pods: []podInfo{wants("p", one)}, open: "[cam-1-0 cam-1-1]",
		},
		"one of two ended": {
			reason: "each pod that requests the resource is accounted for, so no container has the other slot",
			own:    own(0, 1), listings: []kubelet.Listing{{has("p", cam, "cam-1-1")}},
			pods: []podInfo{wants("p", one)},
			held: "[cam-1-1]", ended: "[cam-1-0]",
		},
		"ended pod": {
			reason: "a pod that has ended need not be accounted for",
			own:    own(0), listings: []kubelet.Listing{{}}, pods: []podInfo{{UID: "p", Requests: one, Ended: true}}, ended: "[cam-1-0]",
		},
		"another resource": {
			reason: "only pods that request the same resource delay the decision",
			own:    own(0), listings: []kubelet.Listing{{}}, pods: []podInfo{wants("p", map[string]int{door: 1})}, ended: "[cam-1-0]",
		},
		"two of three shown": {
			reason: "a pod with fewer ids than it requests may have any slot of the node",
			own:    own(0, 1, 2), listings: []kubelet.Listing{{has("p", cam, "cam-1-0", "cam-1-1")}},
			pods: []podInfo{wants("p", map[string]int{cam: 3})},
			held: "[cam-1-0 cam-1-1]", open: "[cam-1-2]",
		},
		"hidden in an init container": {
			reason: "the list never shows what a plain init container has",
			own:    own(0), listings: []kubelet.Listing{{}}, pods: []podInfo{{UID: "p", Hidden: map[string]bool{cam: true}}}, open: "[cam-1-0]",
		},
		"in the first list only": {
			reason: "one list with the slot is enough to keep it",
			own:    own(0), listings: []kubelet.Listing{{has("p", cam, "cam-1-0")}, {}},
		},
		"successor of the same name": {
			reason: "a force-deleted pod of a StatefulSet still runs while its successor is listed under its name",
			own:    own(0, 1), listings: []kubelet.Listing{{has("p", cam, "cam-1-1")}},
			pods: []podInfo{wants("p", one), {UID: "p-old", Namespace: "default", Name: "p", Requests: one}},
			held: "[cam-1-1]", open: "[cam-1-0]",
		},
		"ids of a Configuration": {
			reason:   "virtual ids are not slots",
			listings: []kubelet.Listing{{has("p", "akri.sh/cam", "0", "1")}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := account(tc.own, tc.listings, tc.pods)
			for _, part := range []struct {
				name string
				got  []slots.Ref
				want string
			}{{"held", o.Held, tc.held}, {"ended", o.Ended, tc.ended}, {"open", o.Open, tc.open}} {
				want := part.want
				if want == "" {
					want = "[]"
				}
				if got := fmt.Sprint(part.got); got != want {
					t.Errorf("%s: %s\n got %s\nwant %s", tc.reason, part.name, got, want)
				}
			}
		})
	}
}
