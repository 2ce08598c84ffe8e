package streams

import (
	"time"

	"akri.sh/akri/agent/discover/registry"
)

// grace is how long devices are kept after the stream that reported them broke.
type grace struct {
	Shared, Local time.Duration
}

// defaultGrace applies to all Configurations: they cannot set it yet.
var defaultGrace = grace{Shared: 5 * time.Minute, Local: 0}

const (
	// RestartAllowance is how long a stream may be broken without any change: a
	// handler that was updated or has crashed is back by then. The grace is never
	// shorter.
	RestartAllowance = 30 * time.Second

	// SilenceLimit is the time after which an open stream without any message counts
	// as an empty list: some handlers never send an empty first list.
	SilenceLimit = 5 * time.Minute

	// SettleLimit is how long the endpoints have for their first message after the
	// agent has started, or after the Configuration names another handler. By then
	// the registry has forgotten an endpoint that does not answer.
	SettleLimit = registry.ForgetAfter

	// FailurePatience is how long a stream may fail before the Configuration's status
	// shows it. A refusal by a handler is shown at once.
	FailurePatience = 10 * time.Second
)

// of returns the grace period of shared or local devices.
func (g grace) of(shared bool) time.Duration {
	period := g.Local
	if shared {
		period = g.Shared
	}
	return max(period, RestartAllowance)
}
