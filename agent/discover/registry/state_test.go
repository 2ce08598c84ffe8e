package registry

import (
	"testing"
	"time"
)

func TestStates(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	for name, tc := range map[string]struct {
		reason   string
		happens  func(*record)
		want     State
		forgetAt time.Time
	}{
		"registered": {
			reason:  "no stream was opened",
			happens: func(*record) {}, want: Waiting,
		},
		"in use": {
			reason:  "a stream is open",
			happens: func(r *record) { r.opened() }, want: Active,
		},
		"used by two, one ends": {
			reason:  "the other stream is open",
			happens: func(r *record) { r.opened(); r.opened(); r.closed() }, want: Active,
		},
		"no longer used": {
			reason:  "a stream that the agent closed does not concern the handler",
			happens: func(r *record) { r.opened(); r.closed() }, want: Waiting,
		},
		"broken": {
			reason:  "the handler ended the only stream",
			happens: func(r *record) { r.opened(); r.broke(at(5)) }, want: Offline, forgetAt: at(305),
		},
		"broken for one of two": {
			reason:  "the other stream shows that the handler is available",
			happens: func(r *record) { r.opened(); r.opened(); r.broke(at(5)) }, want: Active,
		},
		"not reached again and again": {
			reason:  "it has been offline since the first failure",
			happens: func(r *record) { r.failed(at(1)); r.failed(at(60)); r.failed(at(200)) }, want: Offline, forgetAt: at(301),
		},
		"back by registration": {
			reason:  "a handler that registers is available",
			happens: func(r *record) { r.failed(at(1)); r.registered(false, at(100)) }, want: Waiting,
		},
		"registers, but fails every call": {
			reason:  "the state does not alternate; it is kept, because it registers",
			happens: func(r *record) { r.failed(at(1)); r.failed(at(90)); r.registered(false, at(100)); r.failed(at(101)) },
			want:    Offline, forgetAt: at(400),
		},
		"back by a stream": {
			reason:  "a later attempt succeeded",
			happens: func(r *record) { r.failed(at(1)); r.opened() }, want: Active,
		},
		"not reached by a probe": {
			reason:  "its Pod is gone",
			happens: func(r *record) { r.unreachable(at(1)); r.unreachable(at(60)) }, want: Offline, forgetAt: at(301),
		},
		"reached by a later probe": {
			reason:  "it was restarting",
			happens: func(r *record) { r.unreachable(at(1)); r.reachable(at(100)) }, want: Waiting,
		},
		"reached by a probe, but failing": {
			reason:  "it accepts connections and fails every call",
			happens: func(r *record) { r.failed(at(1)); r.reachable(at(100)) }, want: Offline, forgetAt: at(301),
		},
	} {
		t.Run(name, func(t *testing.T) {
			var r record
			tc.happens(&r)
			if r.state() != tc.want {
				t.Errorf("%s: got %s, want %s", tc.reason, r.state(), tc.want)
			}
			end := tc.forgetAt
			if end.IsZero() {
				end = at(1000)
			}
			if before, then := r.forgotten(end.Add(-1)), r.forgotten(end); before || then == tc.forgetAt.IsZero() {
				t.Errorf("%s: forgotten before %s: %t, then: %t", tc.reason, end, before, then)
			}
		})
	}
}
