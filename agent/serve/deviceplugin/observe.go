package deviceplugin

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/wait"

	"akri.sh/akri/agent/serve/slots"
	"akri.sh/akri/internal/backoff"
	"akri.sh/akri/internal/deadline"
)

const (
	// gatherTime debounces triggers before an observation: the kubelet's list
	// lags a Pod's event by some 10 ms.
	gatherTime = 50 * time.Millisecond
	// minInterval is the first delay between observations while a slot is undecided, and
	// maxUndecided the last; maxInterval is the interval without any trigger.
	minInterval  = 250 * time.Millisecond
	maxUndecided = 5 * time.Second
	maxInterval  = 10 * time.Second
	// repeats is how often an observation is repeated after a Pod changed, in case the
	// kubelet's list lags for longer.
	repeats = 2
	// maxRate and burst bound the observations per second. The kubelet answers 100 lists per
	// second, to all of its clients.
	maxRate, burst = 5, 5
	// maxRefusals bounds those per second because of calls that were refused: a Deployment
	// repeats such a call ten times a second.
	maxRefusals = 2
)

// observeSoon requests an observation.
func (s *Server) observeSoon() {
	select {
	case s.trigger <- struct{}{}:
	default:
	}
}

// observe observes the node's Pods until ctx is done: after a trigger, repeatedly
// while a slot is undecided, and at least every maxInterval.
func (s *Server) observe(ctx context.Context) {
	limiter := rate.NewLimiter(maxRate, burst)
	next, undecided, due := time.Now().Add(gatherTime), 0, 0
	var noticed time.Time // the reason for an observation, until one has decided
	for {
		timer := time.NewTimer(time.Until(next))
		select {
		case <-ctx.Done():
		case <-timer.C:
			noticed = cmp.Or(noticed, time.Now())
			due--
		case <-s.trigger:
			noticed, undecided = cmp.Or(noticed, time.Now()), 0
			backoff.Sleep(ctx, gatherTime)
		case <-s.observer.Changed():
			noticed, undecided, due = time.Now(), 0, repeats
			backoff.Sleep(ctx, gatherTime)
		}
		timer.Stop()
		if limiter.Wait(ctx) != nil {
			return // ctx is done
		}
		next = time.Now().Add(maxInterval - maxInterval/10 + rand.N(maxInterval/5))
		again := s.observeOnce(ctx, noticed)
		if again || due > 0 {
			next = deadline.Earliest(next, time.Now().Add(wait.Jitter(backoff.Delay(minInterval, maxUndecided, undecided), 0.2)))
			undecided++
		}
		if !again {
			noticed = time.Time{}
			if due <= 0 { // the next undecided slot is another one
				undecided = 0
			}
		}
	}
}

// observeOnce makes one observation, for a reason that was noticed at a time. It reports
// whether another one is due soon.
func (s *Server) observeOnce(ctx context.Context, noticed time.Time) (again bool) {
	type ledger struct {
		own   []slots.Use
		since slots.Generation
		began time.Duration
	}
	l, err := ask(ctx, s, func() ledger { return ledger{s.machine.Uses(), s.machine.Generation(), s.now()} })
	if err != nil {
		return false
	}
	s.log.Debug("Looking for slots to free: reclaiming unused slots - start") // what Akri's agents log, for Akri's end-to-end tests
	o, err := s.observer.Observe(ctx, l.own)
	if err != nil {
		s.log.Debug("Cannot observe the Pods of the node", "err", err)
		return len(l.own) > 0
	}
	again, _ = ask(ctx, s, func() (undecided bool) {
		// Also what was given meanwhile, to a Pod that may have been refused since.
		undecided = slices.ContainsFunc(s.machine.Uses(), func(use slots.Use) bool { return !slices.Contains(o.Listed, use) })
		s.noticed = noticed
		s.step(slots.PodsObserved{Since: l.since, Began: l.began, Listed: o.Listed, Open: o.Open, Unaccounted: o.Unreserved})
		s.noticed = time.Time{}
		for _, d := range o.Duplicates {
			s.warnOfDuplicate(d)
		}
		if o.Accounted {
			s.warnOfHidden(o.Hidden)
		}
		return undecided
	})
	return again
}
