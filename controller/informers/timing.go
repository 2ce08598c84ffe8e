package informers

import "time"

// timing holds the durations that decide how soon a watch that does not work is
// noticed: less than a minute in each case.
type timing struct {
	// stream is how long a stream lasts, plus up to a third of it, so that streams do
	// not end together. A new one notices a permission that was revoked, and an end in
	// time shows that the connection works. No event is lost between two streams.
	stream time.Duration
	// delayedEnd is how late the API server may end a stream.
	delayedEnd time.Duration
	// pause is how long the API server may send nothing during the first list.
	pause time.Duration
	// steady is how long a stream must have been open to count as working.
	steady time.Duration
	// interruption is how long lists and watches may fail without a report: the single
	// API server of an edge cluster may be restarting.
	interruption time.Duration
	// refusal is the same for a definite answer: the controller may not watch the
	// resource, or there is none. An API server that is starting gives it for a few
	// seconds.
	refusal time.Duration
	// check is how often failures are looked for.
	check time.Duration
	// minDelay and maxDelay bound the delay between attempts to list and watch.
	minDelay, maxDelay time.Duration
}

func defaultTiming() timing {
	return timing{
		stream:       27 * time.Second,
		delayedEnd:   8 * time.Second,
		pause:        time.Minute,
		steady:       5 * time.Second,
		interruption: 30 * time.Second,
		refusal:      10 * time.Second,
		check:        2 * time.Second,
		minDelay:     800 * time.Millisecond,
		maxDelay:     5 * time.Second,
	}
}
