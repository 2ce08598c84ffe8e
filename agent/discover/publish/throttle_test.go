package publish

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
)

// A handler whose devices change with each list is reported once, as long as it goes on.
func TestThrottles(t *testing.T) {
	door := types.NamespacedName{Namespace: "plant", Name: "door"}
	for name, tc := range map[string]struct {
		delayed func(second int) bool
		want    string // the seconds in which the failure appears and disappears
	}{
		"never":             {func(int) bool { return false }, ""},
		"at the start":      {func(second int) bool { return second < 20 }, ""},
		"all the time":      {func(int) bool { return true }, "30"},
		"for a minute":      {func(second int) bool { return second < 60 }, "30 89"},
		"every 20 seconds":  {func(second int) bool { return second%20 == 0 }, "40"},
		"every two minutes": {func(second int) bool { return second%120 == 0 }, ""},
		"twice": {func(second int) bool { return second < 40 || second >= 200 && second < 250 },
			"30 69 230 279"},
	} {
		delays, reported, changes := newThrottles(), false, []string{}
		for second := range 300 {
			at := now.Add(time.Duration(second) * time.Second)
			if tc.delayed(second) {
				delays.add(door, "cam", true, at)
			}
			failure, next := delays.report(door, at)
			if (failure != "") != reported {
				reported = !reported
				changes = append(changes, fmt.Sprint(second))
			}
			if reported && (!next.After(at) || !strings.Contains(failure, `such as "cam" change more often`)) {
				t.Errorf("%s: the failure is %q until %s", name, failure, next)
			}
		}
		if got := strings.Join(changes, " "); got != tc.want {
			t.Errorf("%s: the failure appears and disappears at %q, want %q", name, got, tc.want)
		}
		if delays.forget(door); len(delays.all) != 0 {
			t.Errorf("%s: the Configuration is remembered after it was withdrawn", name)
		}
	}
}

// Only the Configurations that use up the writes of a namespace are named, and not those that
// wait because of them.
func TestThrottlesNameTheCause(t *testing.T) {
	names := func(list ...string) (all []types.NamespacedName) {
		for _, name := range list {
			all = append(all, types.NamespacedName{Namespace: "plant", Name: name})
		}
		return all
	}
	all := names("meter", "scale", "door", "lamp")
	for reason, tc := range map[string]struct {
		writes []int // in each second
		want   string
	}{
		"one causes all":     {[]int{50, 0, 0, 0}, "meter"},
		"one causes most":    {[]int{46, 1, 3, 0}, "meter"},
		"two cause most":     {[]int{28, 20, 1, 1}, "meter scale"},
		"all cause it":       {[]int{15, 12, 12, 11}, "meter scale door lamp"},
		"one writes nothing": {[]int{24, 24, 0, 2}, "meter scale"},
	} {
		delays := newThrottles()
		for second := range 100 {
			at := now.Add(time.Duration(second) * time.Second)
			for i, configuration := range all {
				for range tc.writes[i] {
					delays.wrote(configuration, at)
				}
			}
			for _, configuration := range all {
				delays.add(configuration, "cam", false, at)
			}
		}
		var reported []string
		for _, configuration := range all {
			if failure, _ := delays.report(configuration, now.Add(100*time.Second)); failure != "" {
				reported = append(reported, configuration.Name)
			}
		}
		if got := strings.Join(reported, " "); got != tc.want {
			t.Errorf("%s: %q are named, want %q", reason, got, tc.want)
		}
		delays.wrote(all[0], now.Add(time.Hour))
		if kept := len(delays.writes) + len(delays.former); kept != 1 {
			t.Errorf("%s: the writes of %d Configurations are remembered for an hour", reason, kept)
		}
	}
}

// A property that changes with each pass is throttled; what is written by others, or once,
// is not.
func TestChangingPropertyIsThrottled(t *testing.T) {
	b := newBench(t)
	p := b.publisher("node-a")
	for range 100 {
		p.throttles.wrote(types.NamespacedName{Namespace: b.name().Namespace, Name: "busy"}, time.Now())
	}
	changing := camera
	for i := range 4 {
		changing.Properties = map[string]string{"TIME": fmt.Sprint(i)}
		b.publish(p, changing, stick)
	}
	known := p.throttles.all[b.name()]
	if known == nil || known.device != camera.ID {
		t.Fatalf("the delayed writes are %+v, want those of the camera", known)
	}
	known.since = known.since.Add(-throttleReportDelay)
	changing.Properties = map[string]string{"TIME": "last"}
	result := b.publish(p, changing, stick)
	if len(result.Refused) != 1 || !strings.Contains(result.Refused[0], camera.ID) || result.Next.IsZero() {
		t.Errorf("refused %q, again at %s; want the camera, and another pass", result.Refused, result.Next)
	}
}

// A device whose Instance waits because others use up the writes of the namespace is no
// failure of its handler.
func TestWaitingForOthersIsNoFailure(t *testing.T) {
	b := newBench(t)
	p := b.publisher("node-a")
	b.publish(p, camera)
	b.publish(p) // it is gone
	if got := p.throttles.writes[b.name()]; got != 2 {
		t.Errorf("%d writes are counted, want 2", got)
	}
	exhausted := rate.NewLimiter(0, 1)
	exhausted.Allow()
	p.pace.namespaces[b.name().Namespace] = exhausted
	for range 10 {
		p.throttles.wrote(types.NamespacedName{Namespace: b.name().Namespace, Name: "busy"}, time.Now())
	}
	if result := b.publish(p, stick); result.Next.IsZero() || p.throttles.all[b.name()] != nil {
		t.Errorf("again at %s, and the delayed writes are %+v; want it to wait, and to be no reason", result.Next, p.throttles.all[b.name()])
	}
	clear(p.throttles.writes)
	if b.publish(p, stick); p.throttles.all[b.name()] == nil {
		t.Error("nobody is the reason although no other Configuration writes")
	}
}
