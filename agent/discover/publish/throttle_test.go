package publish

import (
	"fmt"
	"strings"
	"testing"
	"time"

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
				delays.add(door, "cam", at)
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

// A property that changes with each pass is throttled; what is written by others, or once,
// is not.
func TestChangingPropertyIsThrottled(t *testing.T) {
	b := newBench(t)
	p := b.publisher("node-a")
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
