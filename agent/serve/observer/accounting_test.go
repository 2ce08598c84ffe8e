package observer

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"akri.sh/akri/agent/serve/kubelet"
	"akri.sh/akri/agent/serve/slots"
)

func TestAccount(t *testing.T) {
	const cam, door = "akri.sh/cam-1", "akri.sh/door-1"
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
		return podInfo{UID: name, Namespace: "default", Name: name, Requests: counts}
	}
	one := map[string]int{cam: 1}
	for name, tc := range map[string]struct {
		reason            string
		own               []slots.Use
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
			own:    own(0), listings: []kubelet.Listing{{}}, pods: []podInfo{{UID: "p", Requests: one, Terminated: true}}, ended: "[cam-1-0]",
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
			own:    own(0), listings: []kubelet.Listing{{has("p", cam, "cam-1-0")}, {}}, open: "[cam-1-0]",
		},
		"successor of the same name": {
			reason: "a force-deleted pod of a StatefulSet still runs while its successor is listed under its name",
			own:    own(0, 1), listings: []kubelet.Listing{{has("p", cam, "cam-1-1")}},
			pods: []podInfo{wants("p", one), {UID: "p-old", Namespace: "default", Name: "p", Requests: one}},
			held: "[cam-1-1]", open: "[cam-1-0]",
		},
		"served by DRA": {
			reason: "the pod has a claim for its extended resources, so its request is no id of the device plugin",
			own:    own(0), listings: []kubelet.Listing{{{Namespace: "default", Name: "p", DRA: true}}},
			pods: []podInfo{wants("p", one)}, ended: "[cam-1-0]",
		},
		"one resource served by DRA": {
			reason: "the resource with an id in the list is not",
			own:    own(0), listings: []kubelet.Listing{{
				{Namespace: "default", Name: "p", DRA: true, IDs: map[string][]string{cam: {"cam-1-1"}}},
			}},
			pods: []podInfo{wants("p", map[string]int{cam: 2, door: 1})}, held: "[cam-1-1]", open: "[cam-1-0]",
		},
		"successor served by DRA": {
			reason: "the pod of the same name that still runs may be served by the device plugin",
			own:    own(0), listings: []kubelet.Listing{{{Namespace: "default", Name: "p", DRA: true}}},
			pods: []podInfo{wants("p", one), {UID: "p-old", Namespace: "default", Name: "p", Requests: one}}, open: "[cam-1-0]",
		},
		"ids of a Configuration": {
			reason:   "virtual ids are listed like slots",
			listings: []kubelet.Listing{{has("p", "akri.sh/cam", "0", "1")}}, held: "[0 1]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := account(tc.listings, tc.pods)
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

// TestCovers checks that a list with a Pod that is being admitted decides nothing: its
// ids are missing, and the Pods API does not show it yet.
func TestCovers(t *testing.T) {
	pod := func(ended bool, requests map[string]int) []podInfo {
		return []podInfo{{UID: "1", Namespace: "default", Name: "p", Terminated: ended, Requests: requests}}
	}
	list := func(ids map[string][]string) kubelet.Listing {
		return kubelet.Listing{{Namespace: "default", Name: "p", IDs: ids}}
	}
	two := map[string]int{"akri.sh/cam": 2}
	for name, tc := range map[string]struct {
		pods    []podInfo
		listing kubelet.Listing
		want    bool
	}{
		"all known":                    {pod(false, two), list(nil), true},
		"nothing listed":               {pod(false, two), nil, true},
		"in admission":                 {nil, list(nil), false},
		"in admission, same namespace": {[]podInfo{{UID: "2", Namespace: "default", Name: "q"}}, list(nil), false},
		"the successor of an ended pod in admission":    {pod(true, two), list(nil), false},
		"the successor has one of two ids":              {pod(true, two), list(map[string][]string{"akri.sh/cam": {"0"}}), false},
		"ended, and its sandbox cannot be removed":      {pod(true, two), list(map[string][]string{"akri.sh/cam": {"0", "1"}}), true},
		"another ended pod, its sandbox is not removed": {pod(true, nil), list(nil), true},
	} {
		if got := covers(tc.pods, tc.listing); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// TestIncomplete checks which resources may have ids that the kubelet considers free while
// a Pod is being admitted. An Allocate for that Pod may wait for the answer: if it were all
// of them, the call would wait until its deadline, and the Pod would be rejected.
func TestIncomplete(t *testing.T) {
	own := []slots.Use{{Resource: "cam-1", ID: "cam-1-0"}, {Resource: "door-1", ID: "door-1-0"}}
	inAdmission := kubelet.Listing{{Namespace: "default", Name: "new"}}
	deleted := podInfo{UID: "1", Namespace: "default", Name: "deleted by force", Requests: map[string]int{"akri.sh/door-1": 1}}
	ended := podInfo{UID: "2", Namespace: "default", Name: "new", Terminated: true, Requests: map[string]int{"akri.sh/cam-1": 1}}
	got := incomplete(own, inAdmission, []podInfo{deleted, ended})
	if got.Accounted {
		t.Error("the Pods are accounted for while one is being admitted")
	}
	if want := "[cam-1 door-1]"; fmt.Sprint(got.Open) != want {
		t.Errorf("open: got %v, want %s", got.Open, want)
	}
	if want := "[door-1]"; fmt.Sprint(got.Lingering) != want {
		t.Errorf("lingering: got %v, want %s", got.Lingering, want)
	}
}

// TestLingering checks which open resources an Allocate waits for. What the kubelet keeps
// for a Pod is never part of a call: a call that waited would wait until that Pod ends.
func TestLingering(t *testing.T) {
	const cam = "akri.sh/cam-1"
	pod := func(uid string) podInfo { return podInfo{UID: uid, Namespace: "default", Name: "p"} }
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
		got := account([]kubelet.Listing{tc.listing}, tc.pods)
		if fmt.Sprint(got.Lingering) != tc.want {
			t.Errorf("%s: lingering: got %v, want %s", name, got.Lingering, tc.want)
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
	got := account([]kubelet.Listing{{
		has("a", "akri.sh/cam-1", "cam-1-0", "cam-1-1"), has("b", "akri.sh/cam-1", "cam-1-2", "cam-1-2"), has("c", "akri.sh/cam-1", "cam-1-0"),
		has("d", "akri.sh/cam", "0"), has("e", "akri.sh/door", "0"),
	}}, nil).Duplicates
	want := "[{{cam-1 cam-1-0} [default/a default/c]} {{cam-1 cam-1-2} [default/b]}]"
	if fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestHidden(t *testing.T) {
	cam := map[string]bool{"akri.sh/cam": true}
	got := account([]kubelet.Listing{{}}, []podInfo{
		{Namespace: "default", Name: "b", Hidden: map[string]bool{"akri.sh/cam": true, "akri.sh/cam-1": true}},
		{Namespace: "default", Name: "a", Hidden: cam}, {Namespace: "default", Name: "ended", Hidden: cam, Terminated: true},
		{Namespace: "default", Name: "waiting", Hidden: cam, Waiting: true}, {Namespace: "default", Name: "none"},
	})
	if want := "[{cam default/a} {cam default/b} {cam-1 default/b}]"; fmt.Sprint(got.Hidden) != want || !got.Accounted {
		t.Errorf("got %v, want %s", got, want)
	}
	if listOnly := account([]kubelet.Listing{{}}, nil); listOnly.Accounted {
		t.Error("a list without the Pods shows what init containers have")
	}
}
