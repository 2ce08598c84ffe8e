package udev

import (
	"maps"
	"slices"
	"time"
)

const (
	// minRetryDelay and maxRetryDelay bound the pause before a device is evaluated again
	// that could not be, because something could not be read.
	minRetryDelay = time.Second
	maxRetryDelay = 8 * time.Second
)

// retry is when a device is evaluated again.
type retry struct {
	at    time.Time
	delay time.Duration
}

// retryLater plans that a device is evaluated again, unless that is planned already.
func (f *finder) retryLater(devPath string, now time.Time) {
	if _, planned := f.retries[devPath]; !planned {
		f.retries[devPath] = retry{at: now.Add(minRetryDelay), delay: minRetryDelay}
	}
}

// nextDeadline returns when the first device has waited long enough for udevd, or is
// evaluated again.
func (f *finder) nextDeadline(now time.Time) (deadline time.Time, ok bool) {
	next := func(each time.Time) {
		if !ok || each.Before(deadline) {
			deadline, ok = each, true
		}
	}
	for _, each := range f.waiting {
		if each.After(now) {
			next(each)
		}
	}
	for _, each := range f.retries {
		next(each.at)
	}
	return deadline, ok
}

// overdue returns the devices that have waited for udevd and are not published, and those
// that must be evaluated again. If that fails, the latter are evaluated again with
// increasing back-off.
func (f *finder) overdue(now time.Time) []string {
	devPaths := map[string]bool{}
	for devPath, deadline := range f.waiting {
		if !deadline.After(now) && f.matches[devPath] == nil {
			devPaths[devPath] = true
		}
	}
	for devPath, each := range f.retries {
		if !each.at.After(now) {
			delay := min(2*each.delay, maxRetryDelay)
			f.retries[devPath] = retry{at: now.Add(delay), delay: delay}
			devPaths[devPath] = true
		}
	}
	return slices.Sorted(maps.Keys(devPaths))
}
