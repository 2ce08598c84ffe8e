package publish

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestPace(t *testing.T) {
	p, cam, door := newPace(), types.NamespacedName{Name: "cam"}, types.NamespacedName{Name: "door"}
	at := func(ms int) time.Time { return now.Add(time.Duration(ms) * time.Millisecond) }
	for _, step := range []struct {
		why    string
		name   types.NamespacedName
		action Action
		ms     int
		again  int // in ms; 0: at once
	}{
		{"a new device is visible at once", cam, Create, 0, 0},
		{"the first change is, too", cam, Update, 10, 0},
		{"the second one is not", cam, Update, 20, 1010},
		{"other Instances do not wait for it", door, Update, 30, 0},
		{"a device that left is gone at once", cam, Leave, 40, 0},
		{"one that flaps returns later", cam, Update, 50, 1040},
		{"a second is over", cam, Update, 1040, 0},
		{"a deletion is never delayed", cam, Delete, 1050, 0},
		{"nor is the Instance that follows", cam, Create, 1060, 0},
		{"nor its first change", cam, Update, 1070, 0},
	} {
		again := 0
		if next := p.admit(step.name, step.action, at(step.ms)); !next.IsZero() {
			again = int(next.Sub(now).Milliseconds())
		}
		if again != step.again {
			t.Errorf("%s: at %d ms, %s may be sent at %d ms, want %d", step.why, step.ms, step.action, again, step.again)
		}
	}
	p.admit(cam, Update, at(5_000))
	if p.failed(cam); !p.admit(cam, Update, at(5_001)).IsZero() {
		t.Error("a write that failed delays the next attempt, which the back-off of the queue decides on")
	}
	until := p.contended(cam, at(5_001))
	if delay := until.Sub(at(5_001)); delay < minConflictDelay || delay > 2*minConflictDelay {
		t.Errorf("the first delay after conflicts is %s", delay)
	}
	if again := p.admit(cam, Update, at(5_002)); again != until || !p.admit(door, Update, at(5_002)).IsZero() {
		t.Errorf("an attempt before the end of the delay is told %s, want %s", again, until)
	}
	for range 20 {
		until = p.contended(cam, at(6_000))
	}
	if delay := until.Sub(at(6_000)); delay < maxConflictDelay/2 || delay > 2*maxConflictDelay {
		t.Errorf("the delay after many conflicts is %s", delay)
	}
	if !p.admit(cam, Update, until).IsZero() {
		t.Error("the delay does not end")
	}
	p.admit(cam, Update, until.Add(2*maxConflictDelay))
	if len(p.last) != 1 || len(p.conflicts) != 0 {
		t.Errorf("%d Instances are remembered, and %d conflicts, want one and none", len(p.last), len(p.conflicts))
	}
}

// A handler whose devices come and go with each message gets the burst of its namespace,
// and then as many writes per second as the namespace may send. All namespaces together
// get those of the agent, and one more write of another namespace need not wait for one.
func TestPaceOfAllWrites(t *testing.T) {
	for namespaces, want := range map[int]int{
		1: maxNamespaceWriteBurst + 10*maxNamespaceWritesPerSecond,
		2: maxWriteBurst + 10*maxWritesPerSecond,
	} {
		p, sent := newPace(), 0
		for ms := range 10_000 {
			at := now.Add(time.Duration(ms) * time.Millisecond)
			for i := range 2 * namespaces {
				name := types.NamespacedName{Namespace: fmt.Sprint(i / 2), Name: fmt.Sprint(ms % 500)}
				if p.admit(name, []Action{Create, Delete}[i%2], at).IsZero() {
					sent++
				}
			}
		}
		if sent < want-5 || sent > want+5 {
			t.Errorf("%d namespaces: %d writes in ten seconds, want %d", namespaces, sent, want)
		}
		end := now.Add(10 * time.Second)
		if other := (types.NamespacedName{Namespace: "other", Name: "cam"}); namespaces == 1 && !p.admit(other, Create, end).IsZero() {
			t.Error("a new device waits for those of another namespace")
		}
		p.admit(types.NamespacedName{Namespace: "other", Name: "cam"}, Create, end.Add(time.Minute))
		if len(p.namespaces) != 1 {
			t.Errorf("%d namespaces are remembered after a minute, want one", len(p.namespaces))
		}
	}
}
