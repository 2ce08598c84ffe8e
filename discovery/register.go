package discovery

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"akri.sh/akri/discovery/protocol"
	"akri.sh/akri/internal/backoff"
)

const (
	registerTimeout = 5 * time.Second
	minRetryDelay   = 50 * time.Millisecond
	maxRetryDelay   = 10 * time.Second
	// pollInterval is how often the handler looks whether the agent has another socket.
	pollInterval = 500 * time.Millisecond
	// renewInterval is how often an unused handler registers, because the agent may
	// have forgotten it.
	renewInterval = time.Minute
)

// registrar keeps a handler registered. A restarted agent creates its socket again,
// and the handler then registers again.
type registrar struct {
	dir     string
	request *protocol.RegisterDiscoveryHandlerRequest
	inUse   func() bool
	report  func(registered bool)
	log     *slog.Logger
}

func (r *registrar) run(ctx context.Context) {
	failures := 0
	for ctx.Err() == nil {
		socket, err := os.Stat(r.socket())
		if err == nil {
			err = r.register(ctx)
		} else {
			err = fmt.Errorf("the agent's socket does not exist: %w", err)
		}
		r.report(err == nil)
		if err != nil {
			delay := backoff.Delay(minRetryDelay, maxRetryDelay, failures)
			r.logFailure(ctx, err, delay)
			failures++
			if r.wait(ctx, socket, delay-rand.N(delay/4)) { // the jitter spreads the handlers
				failures = 0
			}
			continue
		}
		r.log.Info("Registered with the agent", "handler", r.request.GetName(), "socket", r.socket())
		failures = 0
		r.hold(ctx, socket)
	}
}

// logFailure logs a failed registration, except for the first quick attempts. That the
// agent refuses the handler is logged at once.
func (r *registrar) logFailure(ctx context.Context, err error, delay time.Duration) {
	refused := status.Code(err) == codes.PermissionDenied || status.Code(err) == codes.InvalidArgument
	if ctx.Err() == nil && (delay >= maxRetryDelay || refused && delay == minRetryDelay) {
		r.log.Warn("Could not register with the agent; retrying", "handler", r.request.GetName(), "err", err)
	}
}

// hold returns when the handler must register again.
func (r *registrar) hold(ctx context.Context, registered fs.FileInfo) {
	for ctx.Err() == nil {
		if r.wait(ctx, registered, renewInterval) || !r.inUse() {
			return
		}
	}
}

// wait waits until the agent's socket is another one, or the limit has passed. It reports
// whether it is.
func (r *registrar) wait(ctx context.Context, known fs.FileInfo, limit time.Duration) bool {
	deadline := time.After(limit)
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-deadline:
			return false
		case <-tick.C:
		}
		if now, _ := os.Stat(r.socket()); !isSame(now, known) {
			return true
		}
	}
}

// isSame reports whether two sockets, which may be missing, are the same one. File systems
// use the numbers of removed files again.
func isSame(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime())
}

func (r *registrar) socket() string { return filepath.Join(r.dir, protocol.RegistrationSocket) }

func (r *registrar) register(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, registerTimeout)
	defer cancel()
	connection, err := grpc.NewClient("unix:"+r.socket(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	_, err = protocol.NewRegistrationClient(connection).RegisterDiscoveryHandler(ctx, r.request)
	return err
}
