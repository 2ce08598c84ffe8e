package streams

import (
	"time"

	"akri.sh/akri/agent/discover/registry"
)

// grace is how long devices are kept after the stream that reported them broke.
type grace struct {
	Shared, Local time.Duration
}

// defaultGrace applies to Configurations that do not set a grace period. A handler may return at
// another address: then its devices stay as long as those that its first list lacks.
var defaultGrace = grace{Shared: 5 * time.Minute, Local: ReturnAllowance}

// graceOf returns the grace of a Configuration with a grace period; zero for none.
func graceOf(period time.Duration) grace {
	if period == 0 {
		return defaultGrace
	}
	return grace{Shared: period, Local: period}
}

const (
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

// of returns the grace period of shared or local devices.
func (g grace) of(shared bool) time.Duration {
	period := g.Local
	if shared {
		period = g.Shared
	}
	return max(period, restartAllowance)
}
