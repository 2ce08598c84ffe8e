package follow

import (
	"fmt"
	"time"

	"akri.sh/akri/internal/deadline"
)

const (
	// relistInterval is how often the retained messages are requested again, because a
	// broker may have dropped messages; a tenth of it is jitter.
	relistInterval = 10 * time.Minute
	// missInterval is the same after the first list of a connection, and while a device is
	// missing from the last list.
	missInterval = time.Minute
	// quietTime is how long no retained message may arrive until a list is complete. Some
	// brokers answer before they have sent all retained messages, and send these in batches.
	quietTime = 2 * time.Second
	// maxListing bounds the time for a list. A list that takes longer is used, but what it
	// does not have counts as present.
	maxListing = 4 * time.Minute
)

// listing is a list of retained messages that is being received.
type listing struct {
	began time.Time
	// answered says that the broker has answered all requests, which brokers do in order, and
	// heard is when that was, or when the last retained message arrived.
	answered bool
	heard    time.Time
}

// begin requests all retained messages. connected says that the connection is new.
func (f *Follower) begin(connected bool, now time.Time) {
	if connected {
		f.roster.connect(now)
	}
	f.state.Begin(connected, now)
	f.listing = &listing{began: now}
	f.lists++
	f.subscribe(f.filters())
}

// Answered is called when the broker has answered all requests and a later ping.
func (f *Follower) Answered(now time.Time) {
	if l := f.listing; l != nil && !l.answered {
		l.answered, l.heard = true, now
	}
}

// next returns when the list is complete, if nothing happens until then.
func (l *listing) next() time.Time {
	limit := l.began.Add(maxListing)
	if !l.answered {
		return limit
	}
	return deadline.Earliest(limit, l.heard.Add(quietTime))
}

// advanceListing begins a list, or ends it when it is complete.
func (f *Follower) advanceListing(now time.Time) error {
	l := f.listing
	switch {
	case l == nil && !f.relist.IsZero() && !now.Before(f.relist):
		f.begin(false, now)
	case l == nil || now.Before(l.next()):
	case !l.answered:
		return fmt.Errorf("the broker has not answered a subscription for %v", maxListing)
	case now.Before(l.heard.Add(quietTime)):
		f.finish(partial, now)
	default:
		f.finish(whole, now)
	}
	return nil
}

// finish takes over a list.
func (f *Follower) finish(from source, now time.Time) {
	l, first := f.listing, !f.settled
	f.listing, f.complete, f.settled = nil, true, true
	f.state.End()
	f.roster.update(f.state.Devices(), from, now)
	f.options.Scanned(l.began)
	interval := relistInterval - f.options.Jitter(relistInterval/10)
	if first || f.roster.missing {
		interval = missInterval - f.options.Jitter(missInterval/10)
	}
	f.relist = now.Add(interval)
}
