package publish

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"akri.sh/akri/agent/discover/streams"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/apitest"
)

var plantDoor = types.NamespacedName{Namespace: "plant", Name: "door"}

// stepOf returns a step about an Instance of a device with its name.
func stepOf(action Action, name string) Step {
	made := &v0.Instance{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{v0.AnnotationDeviceID: name}}}
	return Step{Action: action, Have: made, Want: made}
}

// at returns a time in ms.
func at(ms int) time.Time { return now.Add(time.Duration(ms) * time.Millisecond) }

// The reasons why an Instance is written later.
func TestGate(t *testing.T) {
	g := newGate()
	for _, step := range []struct {
		why    string
		name   string
		action Action
		ms     int
		want   string // the reason, and when in ms
	}{
		{"a new device is visible at once", "cam", Create, 0, "now"},
		{"the first change is, too", "cam", Update, 10, "now"},
		{"the second one is not", "cam", Update, 20, "recent 1010"},
		{"other Instances do not wait for it", "door", Update, 30, "now"},
		{"a device that left is gone at once", "cam", Leave, 40, "now"},
		{"one that flaps returns later", "cam", Update, 50, "recent 1040"},
		{"a second is over", "cam", Update, 1040, "now"},
		{"a deletion does not wait", "cam", Delete, 1050, "now"},
		{"nor does the Instance that follows", "cam", Create, 1060, "now"},
		{"nor its first change", "cam", Update, 1070, "now"},
	} {
		taken := stepOf(step.action, step.name)
		v, got := g.ask(plantDoor, taken, at(step.ms)), "now"
		switch v.why {
		case 0:
			g.wrote(taken, at(step.ms))
		case recent:
			got = fmt.Sprint("recent ", v.until.Sub(now).Milliseconds())
		}
		if got != step.want {
			t.Errorf("%s: at %d ms, the answer is %s, want %s", step.why, step.ms, got, step.want)
		}
	}
}

// The delay after conflicts, and after refusals, grows up to a limit. A change is tried at
// once if it was refused, but not if other agents are the reason.
func TestGateHolds(t *testing.T) {
	for _, test := range []struct {
		name     string
		v        verdict
		min, max time.Duration
		change   reason // of a changed step
	}{
		{"conflicts", verdict{why: contended}, minConflictDelay, maxConflictDelay, contended},
		{"refusals", verdict{why: refused, err: errors.New("no")}, minRefusedDelay, maxRefusedDelay, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			g, when, cam := newGate(), now, stepOf(Update, "cam")
			for i := range 20 {
				if v := g.ask(plantDoor, cam, when); v.why != 0 {
					t.Fatalf("attempt %d: %+v, want it at %s", i, v, when)
				}
				v := g.hold(cam, test.v, when)
				delay := v.until.Sub(when)
				if i == 0 && (delay < test.min || delay > 2*test.min) || i == 19 && (delay < test.max || delay > 2*test.max) {
					t.Errorf("the delay after attempt %d is %s", i, delay)
				}
				if again := g.ask(plantDoor, cam, v.until.Add(-1)); again != v || !errors.Is(again.err, test.v.err) {
					t.Errorf("an attempt before the end gets %+v, want %+v", again, v)
				}
				when = v.until
			}
			changed := cam
			changed.Want = &v0.Instance{ObjectMeta: cam.Want.ObjectMeta, Spec: v0.InstanceSpec{Capacity: 3}}
			if v := g.ask(plantDoor, changed, when.Add(-1)); v.why != test.change {
				t.Errorf("a change gets %+v", v)
			}
			if v := g.ask(plantDoor, stepOf(Update, "door"), when.Add(-1)); v.why != 0 {
				t.Errorf("another Instance gets %+v", v)
			}
			g.wrote(stepOf(Create, "cam"), when)
			if v := g.hold(cam, test.v, when); v.until.Sub(when) > 2*test.min {
				t.Errorf("after a success, the delay is %s", v.until.Sub(when))
			}
		})
	}
}

// Handlers whose devices come and go with each message get the burst of their Configuration
// and then its writes per second, and all of them those of the node. As long as they are few,
// the device of another Configuration does not wait. Nothing remains of them.
func TestGateOfManyWrites(t *testing.T) {
	for busy, want := range map[int]int{
		1: maxBurst + 10*maxWrites,
		4: maxNodeBurst + 10*maxNodeWrites,
		8: maxNodeBurst + 10*maxNodeWrites,
	} {
		g, written, most, waited := newGate(), 0, 0, 0
		for ms := range 10_000 {
			for i := range busy {
				configuration := types.NamespacedName{Name: fmt.Sprint(i)}
				for _, action := range []Action{Create, Delete, Update} {
					taken := stepOf(action, fmt.Sprint(i, "-", ms))
					if g.ask(configuration, taken, at(ms)).why == 0 {
						written++
						g.wrote(taken, at(ms))
					}
				}
			}
			if ms%1000 == 999 {
				if g.ask(types.NamespacedName{Name: "other"}, stepOf(Create, "other"), at(ms)).why != 0 {
					waited++
				}
			}
			most = max(most, len(g.instances))
		}
		if written < want-15 || written > want+15 {
			t.Errorf("%d Configurations: %d writes in ten seconds, want %d", busy, written, want)
		}
		if busy == 1 && waited > 0 {
			t.Errorf("a new device waits for those of another Configuration")
		}
		if most > maxNodeBurst+10*maxNodeWrites {
			t.Errorf("%d Instances are remembered", most)
		}
		g.ask(plantDoor, stepOf(Update, "cam"), at(3*60_000))
		if len(g.configurations) != 1 || len(g.instances) != 0 {
			t.Errorf("%d Configurations and %d Instances are remembered after minutes", len(g.configurations), len(g.instances))
		}
	}
}

// The refused devices of a handler whose IDs are new in each list are forgotten.
func TestGateForgetsRefusals(t *testing.T) {
	g, most := newGate(), 0
	for ms := range 10 * 60_000 / 5 {
		if taken := stepOf(Create, fmt.Sprint(ms)); g.ask(plantDoor, taken, at(5*ms)).why == 0 {
			g.hold(taken, verdict{why: refused}, at(5*ms))
		}
		most = max(most, len(g.instances))
	}
	if limit := maxBurst + 3*60*maxWrites; most > limit {
		t.Errorf("%d Instances are remembered, want at most %d", most, limit)
	}
}

// A handler whose devices change with each list is named as long as it goes on, with the
// limit that it exceeds.
func TestChangesFailure(t *testing.T) {
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
		"two short times":   {func(second int) bool { return second < 20 || second >= 55 && second < 75 }, ""},
		"twice": {func(second int) bool { return second < 40 || second >= 200 && second < 250 },
			"30 69 230 279"},
	} {
		g, reported, changes := newGate(), false, []string{}
		for second := range 300 {
			when := at(second * 1000)
			g.wrote(stepOf(Update, "cam"), when.Add(-time.Millisecond))
			if tc.delayed(second) {
				g.ask(plantDoor, stepOf(Update, "cam"), when)
			}
			failure, next := g.failure(plantDoor, when)
			if (failure != "") != reported {
				reported = !reported
				changes = append(changes, fmt.Sprint(second))
			}
			if reported && (!next.After(when) || !strings.Contains(failure, `such as "cam" change more often than the agent writes them `+
				"(an Instance once in 1s): only")) {
				t.Errorf("%s: the failure is %q until %s", name, failure, next)
			}
		}
		if got := strings.Join(changes, " "); got != tc.want {
			t.Errorf("%s: the failure appears and disappears at %q, want %q", name, got, tc.want)
		}
	}
	for busy, limit := range map[int]string{
		1: "(the Instances of a Configuration 50 times a second)", 8: "(all Instances of a node 200 times a second)",
	} {
		g := newGate()
		for ms := range 100_000 {
			for i := range busy {
				taken := stepOf(Create, fmt.Sprint(ms))
				g.ask(types.NamespacedName{Name: fmt.Sprint(i)}, taken, at(ms))
			}
			if ms%1000 == 0 {
				g.ask(plantDoor, stepOf(Create, "calm"), at(ms))
			}
		}
		if failure, _ := g.failure(plantDoor, at(100_000)); failure != "" {
			t.Errorf("%d Configurations write too much, and one that does not is blamed: %s", busy, failure)
		}
		if failure, _ := g.failure(types.NamespacedName{Name: "0"}, at(100_000)); !strings.Contains(failure, limit) {
			t.Errorf("%d Configurations: the failure is %q, want %s", busy, failure, limit)
		}
	}
}

// creations counts the requests to create something.
type creations struct {
	http.RoundTripper

	count atomic.Int64
}

func (c *creations) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodPost {
		c.count.Add(1)
	}
	return c.RoundTripper.RoundTrip(request)
}

// An Instance that the API server refuses is not written by each pass: a handler may cause
// two a second. The reason stays, and a change is tried at once.
func TestRefusedInstanceIsNotWrittenByEachPass(t *testing.T) {
	b := newBench(t)
	config, counted := rest.CopyConfig(apitest.Start(t)), &creations{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		counted.RoundTripper = next
		return counted
	})
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	b.client = client
	p := b.publisher("node-a")
	bad := streams.Device{Key: streams.Key{ID: string(make([]byte, 300<<10)), Shared: true}} // annotations have a limit
	began := time.Now()
	for range 50 {
		if result := b.publish(p, camera, bad); len(result.Refused) != 1 || len(result.Devices) != 1 || result.Next.IsZero() {
			t.Fatalf("refused %d, published %d, again at %s; want one each, and another attempt",
				len(result.Refused), len(result.Devices), result.Next)
		}
	}
	if sent, most := counted.count.Load(), 3+int64(time.Since(began)/minRefusedDelay); sent < 2 || sent > most {
		t.Errorf("50 passes sent %d requests, want two, and at most %d in this time", sent, most)
	}
	before := counted.count.Load()
	b.configuration.Spec.Capacity = 3
	if b.publish(p, bad); counted.count.Load() == before {
		t.Error("a change was not tried")
	}
}

// If the API server refuses that this node leaves an Instance, that is named, and keeps nothing
// else of the Configuration from being published and reported.
func TestRefusedDepartureIsNamed(t *testing.T) {
	b := newBench(t)
	config := rest.CopyConfig(apitest.Start(t))
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return apitest.RoundTripper(func(request *http.Request) (*http.Response, error) {
			if request.Method != http.MethodDelete {
				return next.RoundTrip(request)
			}
			return &http.Response{
				StatusCode: http.StatusForbidden, Request: request, Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)),
			}, nil
		})
	})
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	b.client = client
	p := b.publisher("node-a")
	b.publish(p, camera)
	result := b.publish(p, stick)
	if len(result.Refused) != 1 || !strings.Contains(result.Refused[0], "remove node node-a from Instance") ||
		len(result.Devices) != 1 || result.Devices[0].ID != stick.ID || result.Next.IsZero() {
		t.Errorf("got %+v, want the stick, why the camera's Instance stays, and another attempt", result)
	}
}

// A property that changes with each pass is a failure of the handler, and a device that does
// not change is not the one that is named.
func TestChangingPropertyIsNamed(t *testing.T) {
	b := newBench(t)
	p := b.publisher("node-a")
	changing, seen := camera, &changes{}
	change := func(i int) Result {
		changing.Properties = map[string]string{"TIME": fmt.Sprint(i)}
		return b.publish(p, changing, stick)
	}
	b.eventually("a write waits", func() bool {
		change(int(time.Now().UnixNano()))
		seen = p.gate.configurations[b.name()]
		return !seen.last.IsZero()
	})
	seen.since = seen.since.Add(-changesDelay)
	if result := change(0); len(result.Refused) != 1 || !strings.Contains(result.Refused[0], camera.ID) || result.Next.IsZero() {
		t.Errorf("refused %q, again at %s; want the camera, and another pass", result.Refused, result.Next)
	}
}
