package follow

import (
	"strconv"
	"time"

	"akri.sh/akri/discovery/mqtt/convention"
	"akri.sh/akri/internal/deadline"
)

const (
	// relistInterval is how often the retained messages are requested again, because a
	// broker may have dropped messages; a tenth of it is jitter.
	relistInterval = 10 * time.Minute
	// missInterval is the same after the first list of a connection, and while a device is
	// missing from the last list.
	missInterval = time.Minute
	// quietTime is how long no retained message may arrive after the marker until a list is
	// complete, for brokers that send both at the same time; silentTime if the broker has
	// answered a later ping, but not delivered the marker.
	quietTime  = 50 * time.Millisecond
	silentTime = time.Second
	// maxListing bounds the time for a list. A list that takes longer is used, but what it
	// does not have counts as present. The first one may take maxFirstListing, because what
	// it does not have is gone.
	maxListing      = time.Minute
	maxFirstListing = 4 * time.Minute
	// denialTime is how soon after the marker a connection breaks that breaks because of
	// the marker; after maxDenials in a row, the handler does without.
	denialTime = 2 * time.Second
	maxDenials = 2
)

// listing is a list of retained messages that is being received. It has rounds: messages of
// one may name topics to subscribe to in the next.
type listing struct {
	began time.Time
	// asked has the filters that were subscribed for this list; waiting those that are not
	// acknowledged.
	asked, waiting map[string]bool
	// heard is when the last retained message or acknowledgement arrived.
	heard time.Time
	// marker is the expected payload; published is when it was sent, and marked whether it
	// has arrived.
	marker    string
	published time.Time
	marked    bool
	// ping is the number of the ping that was sent after the marker, and answered whether the
	// broker has answered it. A broker handles a client's packets in their order.
	ping     uint64
	answered bool
	// limit is when the list ends in any case.
	limit time.Time
}

// begin requests all retained messages. connected says that the connection is new.
func (f *Follower) begin(connected bool, now time.Time) {
	if connected {
		f.roster.connect(now)
	}
	f.state.Begin(connected, now)
	f.listing = &listing{began: now, limit: now.Add(maxListing), asked: map[string]bool{}, waiting: map[string]bool{}}
	if !f.complete {
		f.listing.limit = now.Add(maxFirstListing)
	}
	f.ask(now)
}

// ask begins a round. It reports whether there was anything to subscribe to.
func (f *Follower) ask(now time.Time) bool {
	l := f.listing
	var filters []string
	for _, filter := range f.filters() {
		if !l.asked[filter] {
			filters = append(filters, filter)
			l.asked[filter], l.waiting[filter] = true, true
		}
	}
	if len(filters) == 0 {
		return false
	}
	f.subscribe(filters)
	l.heard, l.published, l.marked, l.ping, l.answered = now, time.Time{}, false, 0, false
	return true
}

// acknowledged notes that the broker has handled subscriptions.
func (l *listing) acknowledged(filters []string, now time.Time) {
	for _, filter := range filters {
		delete(l.waiting, filter)
	}
	l.heard = now
}

// mark notes that a marker has arrived.
func (l *listing) mark(payload string) {
	if payload == l.marker && !l.published.IsZero() {
		l.marked = true
	}
}

// next returns when the round may be complete.
func (l *listing) next() time.Time {
	switch {
	case len(l.waiting) > 0:
		return l.limit
	case l.published.IsZero():
		return l.heard
	case l.marked:
		return deadline.Earliest(l.limit, l.heard.Add(quietTime))
	case l.answered:
		return deadline.Earliest(l.limit, l.heard.Add(silentTime))
	}
	return l.limit
}

// advanceListing ends a round, or the list, when it is complete.
func (f *Follower) advanceListing(now time.Time) {
	l := f.listing
	if l == nil || now.Before(l.next()) {
		return
	}
	if !now.Before(l.limit) {
		f.finish(partial, now)
		return
	}
	if l.published.IsZero() {
		f.mark(now)
		return
	}
	if !l.marked {
		f.doWithoutMarker()
	}
	if !f.ask(now) {
		f.finish(whole, now)
	}
}

// mark sends the marker and a ping, whose answers say that the broker has sent the retained
// messages.
func (f *Follower) mark(now time.Time) {
	f.serial++
	f.listing.marker, f.listing.published = strconv.Itoa(f.serial), now
	if !f.silent {
		f.requests = append(f.requests, Request{Publish: &convention.Message{Topic: f.options.Marker, Payload: []byte(f.listing.marker)}})
	}
	f.requests = append(f.requests, Request{Ping: true})
}

// Pinged is called when a Ping was sent, with its number on the connection.
func (f *Follower) Pinged(number uint64) {
	if f.listing != nil {
		f.listing.ping = number
	}
}

// Pong is called when the broker has answered a ping, with its number.
func (f *Follower) Pong(number uint64, now time.Time) {
	if l := f.listing; l != nil && l.ping != 0 && number >= l.ping && !l.answered {
		l.answered, l.heard = true, now
	}
}

// doWithoutMarker makes lists complete by silence.
func (f *Follower) doWithoutMarker() {
	if !f.silent {
		f.silent = true
		f.options.Failed(NoMarker)
	}
}

// finish takes over a list.
func (f *Follower) finish(from source, now time.Time) {
	l, first := f.listing, !f.settled
	f.listing = nil
	f.complete, f.settled, f.dirty, f.refilter = true, true, false, false
	f.looked = now
	f.state.End()
	f.roster.update(f.state.Devices(now), from, now)
	f.options.Scanned(l.began)
	wanted := map[string]bool{f.options.Marker: true}
	for _, filter := range f.filters() {
		wanted[filter] = true
	}
	var surplus []string
	for filter := range f.subscribed {
		if !wanted[filter] {
			surplus = append(surplus, filter)
			delete(f.subscribed, filter)
		}
	}
	f.unsubscribe(surplus)
	interval := relistInterval - f.options.Jitter(relistInterval/10)
	if first || f.roster.missing() {
		interval = missInterval - f.options.Jitter(missInterval/10)
	}
	f.relist = now.Add(interval)
}
