package nodes

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

var (
	epoch  = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	cam    = types.NamespacedName{Namespace: "ns", Name: "cam"}
	graces = Options{NotReadyGrace: 5 * time.Minute, GoneGrace: 30 * time.Second}
)

func at(minutes float64) time.Time { return epoch.Add(time.Duration(minutes * float64(time.Minute))) }

func TestWhenANodeIsTakenOff(t *testing.T) {
	type sight struct {
		minute float64
		state  State
		uid    types.UID
	}
	for name, tc := range map[string]struct {
		reason string
		seen   []sight
		then   func(*outage)
		want   time.Time // zero: never
	}{
		"Ready": {"nothing is lost", []sight{{0, Ready, "u"}}, nil, time.Time{}},
		"not Ready": {"the grace counts from when it was seen first", []sight{{0, NotReady, "u"}, {4, NotReady, "u"}},
			nil, at(5)},
		"back in time": {"a node that was Ready in between is not lost", []sight{{0, NotReady, "u"}, {4, Ready, "u"}, {4.5, NotReady, "u"}},
			nil, at(9.5)},
		"gone": {"a kubelet may register it anew", []sight{{0, Gone, ""}},
			nil, at(0.5)},
		"not Ready, then gone": {"its Pods go with it, so there is less to wait for", []sight{{0, NotReady, "u"}, {1, Gone, ""}},
			nil, at(1.5)},
		"gone, then there, not Ready": {"a new kubelet has registered it and is on its way", []sight{{0, Gone, ""}, {0.4, NotReady, "v"}},
			nil, at(5.4)},
		"replaced": {"another node of the same name has all the time", []sight{{0, NotReady, "u"}, {4, NotReady, "v"}},
			nil, at(9)},
		"in use": {"Pods are not watched: they are asked for again", []sight{{0, NotReady, "u"}},
			func(o *outage) { o.inUse(cam, at(5)) }, at(10)},
		"put back by its agent": {"the agent lives; it is not fought", []sight{{0, NotReady, "u"}},
			func(o *outage) { o.tookOff(cam, at(5)) }, at(15)},
		"put back three times": {"it is left alone longer each time", []sight{{0, NotReady, "u"}},
			func(o *outage) { o.tookOff(cam, at(5)); o.tookOff(cam, at(15)); o.tookOff(cam, at(35)) }, at(75)},
		"put back very often": {"but its agent may have died since", []sight{{0, NotReady, "u"}},
			func(o *outage) {
				for range 100 {
					o.tookOff(cam, at(5))
				}
			}, at(5 + 24*60)},
		"another Instance": {"each is on its own", []sight{{0, NotReady, "u"}},
			func(o *outage) { o.tookOff(types.NamespacedName{Name: "other"}, at(5)) }, at(5)},
	} {
		t.Run(name, func(t *testing.T) {
			all := outages{}
			var last *outage
			for _, s := range tc.seen {
				last = all.see("a", s.state, s.uid, at(s.minute))
			}
			if last == nil {
				if !tc.want.IsZero() || len(all) > 0 {
					t.Errorf("%s: got no outage, want one due at %s; remembered %d", tc.reason, tc.want, len(all))
				}
				return
			}
			if tc.then != nil {
				tc.then(last)
			}
			if got := last.due(cam, graces); !got.Equal(tc.want) {
				t.Errorf("%s\n got %s\nwant %s", tc.reason, got, tc.want)
			}
		})
	}
}

func TestUseEndsWithTheNode(t *testing.T) {
	all := outages{}
	all.see("a", NotReady, "u", at(0)).inUse(cam, at(5))
	if got, want := all.see("a", Gone, "", at(6)).due(cam, graces), at(6.5); !got.Equal(want) {
		t.Errorf("the Pods of a node that is gone are garbage: due at %s, want %s", got, want)
	}
}

func TestNodesThatWentLongAgoAreForgotten(t *testing.T) {
	all := outages{}
	all.see("long ago", Gone, "", at(0))
	all.see("there", NotReady, "u", at(0))
	all.see("new", Gone, "", at(3*24*60))
	if len(all) != 2 || all["long ago"] != nil {
		t.Errorf("remembered: %v", all)
	}
}
