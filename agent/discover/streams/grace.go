package streams

import (
	"time"

	"akri.sh/akri/agent/discover/registry"
)

// Grace is how long devices are kept after the stream that found them broke.
type Grace struct {
	Shared, Local time.Duration
}

// DefaultGrace is that of Configurations, which cannot say otherwise yet.
var DefaultGrace = Grace{Shared: 5 * time.Minute, Local: 0}

const (
	// RestartAllowance is how long a broken stream may be away and nothing at
	// all changes: a handler that is updated or has crashed is back by then.
	// Grace is never shorter.
	RestartAllowance = 30 * time.Second

	// SilenceLimit is when a stream that has said nothing yet is taken to say
	// "no devices": handlers exist that never send an empty first list.
	SilenceLimit = 5 * time.Minute

	// SettleLimit is how long the endpoints have to say what they find after
	// the agent has started, or after the Configuration asks another handler.
	// It is that of the registry: by then a silent endpoint is forgotten.
	SettleLimit = registry.ForgetAfter

	// FailurePatience is how long a stream may fail before it is told to the
	// Configuration's author. What a handler refuses is told at once.
	FailurePatience = 10 * time.Second
)

func (g Grace) of(shared bool) time.Duration {
	grace := g.Local
	if shared {
		grace = g.Shared
	}
	return max(grace, RestartAllowance)
}
