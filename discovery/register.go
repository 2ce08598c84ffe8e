package discovery

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"akri.sh/akri/discovery/internal/filewatch"
	"akri.sh/akri/discovery/protocol"
)

const (
	// agentSocket is the agent's socket in the folder of the handlers.
	agentSocket = "agent-registration.sock"

	registerTimeout = 5 * time.Second
	firstRetry      = 50 * time.Millisecond
	longestRetry    = 10 * time.Second
	lookAgain       = 30 * time.Second // for a socket whose creation went unseen
	registerAgain   = time.Minute      // while no agent uses the handler: it may have forgotten it

)

// registrar keeps a handler registered: an agent that restarts makes its socket
// anew, and that is the sign to register again.
type registrar struct {
	directory string
	request   *protocol.RegisterDiscoveryHandlerRequest
	inUse     func() bool
	log       *slog.Logger
}

func (r *registrar) run(ctx context.Context) {
	changed, stop, err := filewatch.File(r.socket())
	defer stop()
	if err != nil {
		r.log.Warn("cannot watch for the agent's socket; looking for it at intervals", "err", err)
	}

	retry := firstRetry
	for ctx.Err() == nil {
		socket, err := os.Stat(r.socket())
		if err == nil {
			err = r.register(ctx)
		} else {
			err = fmt.Errorf("the agent's socket is not there: %w", err)
		}
		if err != nil {
			r.logFailure(ctx, err, retry)
			if woken := wait(ctx, changed, jitter(retry)); woken {
				retry = firstRetry
			} else {
				retry = min(2*retry, longestRetry)
			}
			continue
		}
		r.log.Info("registered with the agent", "handler", r.request.GetName(), "socket", r.socket())
		retry = firstRetry
		r.hold(ctx, changed, socket)
	}
}

// logFailure says once per failed round, and not for the quick ones, that the
// handler is not registered.
func (r *registrar) logFailure(ctx context.Context, err error, retry time.Duration) {
	if ctx.Err() == nil && retry >= longestRetry {
		r.log.Warn("not registered with the agent; trying on", "handler", r.request.GetName(), "err", err)
	}
}

// hold returns when it is time to register again.
func (r *registrar) hold(ctx context.Context, changed <-chan struct{}, registered fs.FileInfo) {
	idleSince := time.Now()
	for ctx.Err() == nil {
		if wait(ctx, changed, lookAgain) {
			return
		}
		now, err := os.Stat(r.socket())
		if err == nil && !os.SameFile(now, registered) {
			return
		}
		if r.inUse() {
			idleSince = time.Now()
		} else if time.Since(idleSince) >= registerAgain {
			return
		}
	}
}

func (r *registrar) socket() string { return filepath.Join(r.directory, agentSocket) }

func (r *registrar) register(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, registerTimeout)
	defer cancel()
	connection, err := grpc.NewClient("passthrough:///agent",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"), // not the path: servers in other languages refuse that
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			var dialer net.Dialer
			return dialer.DialContext(ctx, "unix", r.socket())
		}),
	)
	if err != nil {
		return err
	}
	defer connection.Close()
	_, err = protocol.NewRegistrationClient(connection).RegisterDiscoveryHandler(ctx, r.request)
	return err
}

// wait waits for a signal, a time or the end, and says whether it was the
// signal.
func wait(ctx context.Context, signal <-chan struct{}, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-signal:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// jitter spreads the retries of many handlers: 75 % to 100 % of the duration.
func jitter(duration time.Duration) time.Duration {
	return duration - rand.N(duration/4)
}
