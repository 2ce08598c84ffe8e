package controller

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"akri.sh/akri/controller/confine"
)

// Options are the controller's settings.
type Options struct {
	// Workers is how many Instances, and how many Configurations, are looked
	// at at the same time.
	Workers int
	// NodeGrace is how long a node may be not Ready before it is taken off its
	// Instances. 0: never; see docs/nodes.md.
	NodeGrace time.Duration
	// SweepEvery is how often strays are looked for; 0: never. See package sweep.
	SweepEvery time.Duration
	// Metrics is where the controller's metrics are registered; nil: nowhere.
	Metrics prometheus.Registerer
	// Policy is what the operator allows templates beyond what is safe.
	Policy confine.Policy
}

func (o Options) validate() error {
	if o.Workers < 1 {
		return fmt.Errorf("workers: %d is too few: want at least 1", o.Workers)
	}
	if o.SweepEvery < 0 {
		return fmt.Errorf("sweep interval: %v is negative: want 0 for never, or longer", o.SweepEvery)
	}
	return nil
}
