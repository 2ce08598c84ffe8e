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

// Each script is a list of requests, separated by semicolons, at seconds since the start, and
// what became of them. The changes that health reports are listed with their times.
func TestHealth(t *testing.T) {
	errs := map[string]error{
		"forbidden": apierrors.NewForbidden(schema.GroupResource{Resource: "twins"}, "", errors.New("no")),
		"missing":   apierrors.NewNotFound(schema.GroupResource{Resource: "twins"}, ""),
		"refused":   errors.New("connection refused"),
	}
	for name, test := range map[string]struct {
		reason, script string
		fresh          bool // never synced
		want           string
	}{
		"API server restarts": {
			reason: "an interruption of less than 30 s is no news",
			script: "0 open; 11 refused; 13 refused; 17 refused; 25 refused; 40 refused; 41 open; 45 refused",
		},
		"API server is away": {
			script: "0 open; 11 refused; 25 refused; 45 refused; 65 refused; 70 open",
			want:   "45 failed; 70 recovered",
		},
		"permission revoked": {
			reason: "noticed when the watch is opened again, and the authorizer of a starting API server has had its time",
			script: "0 open; 35 forbidden; 36 forbidden; 40 forbidden; 45 forbidden; 60 forbidden; 61 open",
			want:   "45 failed; 61 recovered",
		},
		"version no longer served": {script: "0 open; 3 missing; 5 missing; 14 missing", want: "14 failed"},
		"authorizer not ready yet": {script: "0 open; 11 refused; 14 forbidden; 15 open"},
		"never allowed": {
			reason: "nothing is interrupted: the parents wait for the answer",
			script: "0 forbidden; 1 forbidden; 30 open", fresh: true, want: "0 failed; 30 recovered",
		},
		"never reached": {script: "0 refused; 20 refused; 40 refused", fresh: true, want: "40 failed"},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Unix(1_000_000, 0)
			h := health{pace: pace, synced: !test.fresh}
			var got []string
			for event := range strings.SplitSeq(test.script, "; ") {
				var second int
				var what string
				if _, err := fmt.Sscan(event, &second, &what); err != nil {
					t.Fatal(err)
				}
				before, now := h.err, start.Add(time.Duration(second)*time.Second)
				if what == "open" {
					h = h.works()
				} else {
					h = h.fails(now, now, errs[what])
				}
				switch {
				case before == nil && h.err != nil:
					got = append(got, fmt.Sprint(second, " failed"))
				case before != nil && h.err == nil:
					got = append(got, fmt.Sprint(second, " recovered"))
				}
				if state := h.state(); state.Synced != (h.synced && state.Err == nil) {
					t.Errorf("at %d s the state is %+v", second, state)
				}
			}
			if got := strings.Join(got, "; "); got != test.want {
				t.Errorf("%s:\nscript %s\nreports %q, want %q", test.reason, test.script, got, test.want)
			}
		})
	}
}
