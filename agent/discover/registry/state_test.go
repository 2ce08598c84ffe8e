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
			reason:  "nobody has asked it anything",
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
			reason:  "that we ended the stream says nothing of the handler",
			happens: func(r *record) { r.opened(); r.closed() }, want: Waiting,
		},
		"broken": {
			reason:  "the handler ended the only stream",
			happens: func(r *record) { r.opened(); r.broke(at(5)) }, want: Offline, forgetAt: at(305),
		},
		"broken for one of two": {
			reason:  "the other stream shows that the handler is there",
			happens: func(r *record) { r.opened(); r.opened(); r.broke(at(5)) }, want: Active,
		},
		"not reached again and again": {
			reason:  "it is offline since the first time",
			happens: func(r *record) { r.failed(at(1)); r.failed(at(60)); r.failed(at(200)) }, want: Offline, forgetAt: at(301),
		},
		"back by registration": {
			reason:  "a handler that registers is there",
			happens: func(r *record) { r.failed(at(1)); r.registered(false) }, want: Waiting,
		},
		"back by a stream": {
			reason:  "the dialling went on and succeeded",
			happens: func(r *record) { r.failed(at(1)); r.opened() }, want: Active,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var r record
			tc.happens(&r)
			forgetAt, _ := r.forgetAt()
			if r.state() != tc.want || !forgetAt.Equal(tc.forgetAt) {
				t.Errorf("%s\n got %s, forgotten %s\nwant %s, forgotten %s", tc.reason, r.state(), forgetAt, tc.want, tc.forgetAt)
			}
		})
	}
}
