package streams

import (
	"time"

	"akri.sh/akri/agent/discover/registry"
)

const (
	// defaultGrace applies to shared devices if the Configuration has no grace period.
	defaultGrace = 5 * time.Minute

	// restartAllowance is how long a stream may be broken before anything changes. A
	// handler that was updated or has crashed is back by then. The grace period is
	// never shorter.
	restartAllowance = 30 * time.Second

	// ReturnAllowance is how long Instances stay, offline, whose devices the first list
	// lacks that an endpoint sends after its stream was lost, or after the agent has
	// started. A handler that has just started knows less than it did before: a device may
	// answer its second question, and DNS or a broker may be back a minute later. Handlers
	// need not wait for them before they send a list. A device that the list has, and a
	// later one lacks, is gone.
	ReturnAllowance = 90 * time.Second

	// firstListTimeout is the time after which an open stream without a message counts
	// as an empty list. Some handlers never send an empty first list.
	firstListTimeout = 5 * time.Minute

	// settleLimit bounds the wait for the endpoints' first messages after the agent
	// has started, or after the Configuration names another handler. By then the
	// registry has forgotten endpoints that do not answer. A longer grace period of the
	// Configuration extends it.
	settleLimit = registry.ForgetAfter

	// failureReportDelay is how long a stream may fail before the Configuration's
	// status shows it. A handler's rejection is shown at once.
	failureReportDelay = 10 * time.Second
)

// keeps returns how long devices are kept after the stream that reported them broke, for the
// grace period of their Configuration; zero for none.
func keeps(gracePeriod time.Duration, shared bool) time.Duration {
	switch {
	case gracePeriod > 0:
		return max(gracePeriod, restartAllowance)
	case shared:
		return defaultGrace
	}
	return ReturnAllowance // a handler may return at another address
}
