package informers

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Each script is a list of events, separated by semicolons, at seconds since the
// start. health is checked every second until the end, and the changes that it
// reports are listed with their times.
func TestHealth(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "twins"}, "", errors.New("no"))
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "twins"}, "")
	refused := errors.New("connection refused")
	for name, test := range map[string]struct {
		reason string
		script string
		fresh  bool // never synced
		want   string
	}{
		"works": {
			reason: "watches that the API server ends in time say nothing",
			script: "0 open; 35 end; 35 open; 70 end; 70 open",
		},
		"API server restarts": {
			reason: "an interruption of less than 30 s is no news",
			script: "0 open; 10 end; 11 refused; 13 refused; 17 refused; 25 refused; 33 open; 65 end",
		},
		"API server is away": {
			script: "0 open; 10 end; 11 refused; 25 refused; 45 refused; 65 refused; 70 open",
			want:   "41 failed; 75 recovered",
		},
		"permission revoked": {
			reason: "noticed when the watch is opened again, and the authorizer of a starting API server has had its time",
			script: "0 open; 35 end; 35 forbidden; 36 forbidden; 40 forbidden; 60 forbidden; 61 open",
			want:   "45 failed; 66 recovered",
		},
		"version no longer served": {
			script: "0 open; 3 end; 3 missing; 5 missing",
			want:   "13 failed",
		},
		"authorizer not ready yet": {
			script: "0 open; 10 end; 11 refused; 14 forbidden; 15 open",
		},
		"ended with an error again and again": {
			reason: "lists between the errors succeed, but prove nothing",
			script: "0 open; 10 end; 11 open; 12 end; 15 open; 16 end; 25 open; 27 end; 38 open; 39 end; 50 open; 54 end",
			want:   "42 failed",
		},
		"ended at once, without an error": {
			script: "0 open; 35 end; 35 open; 36 end; 40 open; 41 end; 55 open; 55 end; 75 open; 76 end",
			want:   "66 failed",
		},
		"hangs": {
			reason: "the failure began with the watch, and an open watch does not prove the contrary",
			script: "0 open; 40 silent; 40 open; 80 silent; 80 open; 115 end",
			want:   "40 failed; 115 recovered",
		},
		"stopped by the controller": {
			script: "0 open; 1 abandoned; 1 open; 2 abandoned; 2 open; 3 abandoned; 50 open",
		},
		"never allowed": {
			reason: "nothing is interrupted: the parents wait for the answer",
			script: "0 forbidden; 1 forbidden; 30 open",
			fresh:  true,
			want:   "0 failed; 35 recovered",
		},
		"never reached": {
			script: "0 refused; 20 refused; 40 refused",
			fresh:  true,
			want:   "30 failed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Unix(1_000_000, 0)
			h := health{timing: defaultTiming(), synced: !test.fresh}
			events := map[int][]string{}
			last := 0
			for event := range strings.SplitSeq(test.script, "; ") {
				var second int
				var what string
				if _, err := fmt.Sscan(event, &second, &what); err != nil {
					t.Fatal(err)
				}
				events[second] = append(events[second], what)
				last = second
			}
			var got []string
			for second := range last + 20 {
				now := start.Add(time.Duration(second) * time.Second)
				for _, what := range events[second] {
					switch what {
					case "open":
						h.open(now)
					case "end":
						h.end(now)
					case "silent":
						h.silence()
						h.end(now)
					case "abandoned":
						h.abandon()
						h.end(now)
					case "refused":
						h.fail(now, refused)
					case "forbidden":
						h.fail(now, forbidden)
					case "missing":
						h.fail(now, missing)
					default:
						t.Fatalf("unknown event %q", what)
					}
				}
				switch h.report(now) {
				case failed:
					got = append(got, fmt.Sprint(second, " failed"))
				case recovered:
					got = append(got, fmt.Sprint(second, " recovered"))
				}
				if state := h.state(); (state.Err != nil) != h.reported || h.reported && state.Synced {
					t.Errorf("at %d s the state is %+v", second, state)
				}
			}
			if got := strings.Join(got, "; "); got != test.want {
				t.Errorf("%s:\nscript %s\nreports %q, want %q", test.reason, test.script, got, test.want)
			}
		})
	}
}
