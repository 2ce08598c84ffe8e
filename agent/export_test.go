package agent

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"akri.sh/akri/agent/device"
	"akri.sh/akri/agent/health"
	"akri.sh/akri/agent/instances"
	v0 "akri.sh/akri/api/v0"
)

// RunWithSink runs an agent whose devices go to a sink instead of the kubelet.
func RunWithSink(ctx context.Context, options Options, sink device.Sink) error {
	return run(ctx, options, func(clients, *instances.Store, prometheus.Registerer, *health.Monitor, Options) (deviceServer, error) {
		return sinkServer{sink}, nil
	})
}

type sinkServer struct{ device.Sink }

func (sinkServer) InstanceEvent(instances.Event, *v0.Instance) {}

func (sinkServer) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// WithMissingDelay returns options with another delay before a handler is missing.
func WithMissingDelay(options Options, delay time.Duration) Options {
	options.missingDelay = delay
	return options
}

// WithWorkerLimit returns options with a limit for workers without progress.
func WithWorkerLimit(options Options, limit time.Duration) Options {
	options.workerLimit = limit
	return options
}

// WithAccountingLimit returns options with a limit for a kubelet that does not show which
// slots are in use.
func WithAccountingLimit(options Options, limit time.Duration) Options {
	options.accountingLimit = limit
	return options
}
