package nodes

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

var (
	epoch        = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	gracePeriods = Options{NotReadyGrace: 5 * time.Minute, GoneGrace: 30 * time.Second}
)

func at(minutes float64) time.Time { return epoch.Add(time.Duration(minutes * float64(time.Minute))) }

func TestWhenANodeIsRemoved(t *testing.T) {
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
		"not Ready": {"the grace period starts when it is first observed", []sight{{0, NotReady, "u"}, {4, NotReady, "u"}},
			nil, at(5)},
		"back in time": {"a node that was Ready in between is not lost", []sight{{0, NotReady, "u"}, {4, Ready, "u"}, {4.5, NotReady, "u"}},
			nil, at(9.5)},
		"gone": {"a kubelet may register it again", []sight{{0, Gone, ""}},
			nil, at(0.5)},
		"not Ready, then gone": {"its Pods are deleted with it, so the wait is shorter", []sight{{0, NotReady, "u"}, {1, Gone, ""}},
			nil, at(1.5)},
		"gone, then there, not Ready": {"a new kubelet has registered it and will soon be Ready", []sight{{0, Gone, ""}, {0.4, NotReady, "v"}},
			nil, at(5.4)},
		"replaced": {"another node of the same name gets the whole grace period", []sight{{0, NotReady, "u"}, {4, NotReady, "v"}},
			nil, at(9)},
		"in use": {"Pods are not watched: they are listed again", []sight{{0, NotReady, "u"}},
			func(o *outage) { o.record("cam", false, at(5), gracePeriods) }, at(10)},
		"re-added by its agent": {"the agent is alive; the controller backs off", []sight{{0, NotReady, "u"}},
			func(o *outage) { o.record("cam", true, at(5), gracePeriods) }, at(15)},
		"re-added three times": {"the back-off doubles", []sight{{0, NotReady, "u"}},
			func(o *outage) {
				o.record("cam", true, at(5), gracePeriods)
				o.record("cam", true, at(15), gracePeriods)
				o.record("cam", true, at(35), gracePeriods)
			}, at(75)},
		"re-added very often": {"the back-off is limited: the agent may have died since", []sight{{0, NotReady, "u"}},
			func(o *outage) {
				for range 100 {
					o.record("cam", true, at(5), gracePeriods)
				}
			}, at(5 + 24*60)},
		"another Instance": {"each Instance has its own back-off", []sight{{0, NotReady, "u"}},
			func(o *outage) { o.record("other", true, at(5), gracePeriods) }, at(5)},
	} {
		t.Run(name, func(t *testing.T) {
			all := outages{}
			var last *outage
			for _, s := range tc.seen {
				last = all.observe("a", status{s.state, s.uid}, at(s.minute))
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
			if got := last.due("cam", gracePeriods); !got.Equal(tc.want) {
				t.Errorf("%s\n got %s\nwant %s", tc.reason, got, tc.want)
			}
		})
	}
}

func TestUseEndsWithTheNode(t *testing.T) {
	all := outages{}
	all.observe("a", status{NotReady, "u"}, at(0)).record("cam", false, at(5), gracePeriods)
	if got, want := all.observe("a", status{Gone, ""}, at(6)).due("cam", gracePeriods), at(6.5); !got.Equal(want) {
		t.Errorf("the Pods of a deleted node are garbage: due at %s, want %s", got, want)
	}
}

func TestNodesThatWereDeletedLongAgoAreForgotten(t *testing.T) {
	all := outages{}
	all.observe("long ago", status{Gone, ""}, at(0))
	all.observe("there", status{NotReady, "u"}, at(0))
	all.observe("new", status{Gone, ""}, at(3*24*60))
	if len(all) != 2 || all["long ago"] != nil {
		t.Errorf("remembered: %v", all)
	}
}
