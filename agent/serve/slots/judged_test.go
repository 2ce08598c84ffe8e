package slots_test

import (
	"fmt"
	"strings"
	"testing"
)

// check is a condition that the model excuses from in some states, because a user, or a
// known limit in doc.go, may violate it.
type check int

const (
	oneUser  check = iota // I2: one container has a slot, and the record names its owner
	written               // I2: the owner of a slot in use is recorded in time
	capacity              // I3: a claim leaves no more owners than the capacity
	ownCall               // I4: a call for slots that the node owns is not refused for that
	sameSlot              // the containers of a Pod get the same slots
	unlisted              // I6: a call that names an ID that has left the list is refused
	released              // I7: a slot without a container is released in time
	conflict              // no conflict is reported
	numberOfChecks
)

// bounds are what many schedules reach at least: the share of the checks that are judged,
// not excused, in percent, and how many are judged in each schedule. Both leave a margin.
var bounds = [numberOfChecks]struct {
	name  string
	share float64
	each  float64
}{
	oneUser:  {"I2 one user", 92, 500},
	written:  {"I2 written", 25, 2},
	capacity: {"I3 capacity", 70, 4},
	ownCall:  {"I4 own call", 98, 3},
	sameSlot: {"same slots", 97, 2},
	unlisted: {"I6 unlisted", 100, 0.006},
	released: {"I7 released", 65, 5},
	conflict: {"no conflict", 88, 400},
}

// tally counts the checks that were judged, and those that were excused.
type tally [numberOfChecks]struct{ judged, excused int }

// judge counts a check, and reports whether it is judged.
func (t *tally) judge(c check, judged bool) bool {
	if judged {
		t[c].judged++
	} else {
		t[c].excused++
	}
	return judged
}

func (t *tally) add(o tally) {
	for c := range o {
		t[c].judged += o[c].judged
		t[c].excused += o[c].excused
	}
}

// share returns how many percent of the checks were judged.
func (t *tally) share(c check) float64 {
	return 100 * float64(t[c].judged) / float64(max(1, t[c].judged+t[c].excused))
}

func (t tally) String() string {
	var out []string
	for c := range t {
		out = append(out, fmt.Sprintf("%s: %d (%.1f %%)", bounds[c].name, t[c].judged, t.share(check(c))))
	}
	return strings.Join(out, ", ")
}

// demand fails if the model excuses so much that it may no longer find a violation.
func (t *tally) demand(tt *testing.T, schedules uint64) {
	tt.Helper()
	for c, bound := range bounds {
		each := float64(t[c].judged) / float64(schedules)
		if share := t.share(check(c)); share < bound.share || each < bound.each {
			tt.Errorf("%s: the model judges %.1f %% of the checks, %.2f in each schedule, want at least %.1f %% and %.2f",
				bound.name, share, each, bound.share, bound.each)
		}
	}
}
