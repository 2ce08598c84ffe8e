package deviceplugin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

const (
	// connectWait is how long a running kubelet may take to open its stream. Its
	// plugin watcher was seen to take up to a second on an idle machine.
	connectWait = 8 * time.Second
	// stopTimeout is how long calls and lists under way may take when a server
	// ends.
	stopTimeout = 300 * time.Millisecond
	// shortestRest and longestRest are between attempts that failed.
	shortestRest = 200 * time.Millisecond
	longestRest  = 10 * time.Second
)

// lifecycle serves one resource until its context ends: on one socket after the
// other, never on two.
type lifecycle struct {
	resource  string
	service   *service
	registrar *registrar
	log       *slog.Logger
}

// run makes attempts until ctx ends.
func (l *lifecycle) run(ctx context.Context) {
	rest := shortestRest
	for ctx.Err() == nil {
		way, again := l.registrar.current()
		begun := time.Now()
		err := l.attempt(ctx, way, again)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			rest = shortestRest
			continue
		case time.Since(begun) > longestRest+connectWait:
			rest = shortestRest // it had worked for some time
		}
		l.log.Warn("the kubelet does not use our socket; trying another", "road", way.String(), "error", err, "after", rest)
		select {
		case <-ctx.Done():
		case <-again:
		case <-time.After(rest):
		}
		rest = min(2*rest, longestRest)
	}
}

// attempt serves on a socket of its own until the kubelet has left it for good
// (an error) or another attempt is due (none). When it returns, the kubelet's
// stream has ended and the socket is gone.
func (l *lifecycle) attempt(ctx context.Context, way road, again <-chan struct{}) error {
	path, err := socketPath(l.registrar.dir(way), l.resource)
	if err != nil {
		return err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	server := grpc.NewServer(grpc.WaitForHandlers(true))
	streams, refusals := newGauge(), make(chan error, 1)
	plugin.RegisterDevicePluginServer(server, &connection{service: l.service, streams: streams})
	if way == byWatcher {
		registration.RegisterRegistrationServer(server, &announcement{resource: l.resource, refusals: refusals})
	}
	var served sync.WaitGroup
	served.Go(func() {
		if err := server.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			select {
			case refusals <- err:
			default:
			}
		}
	})
	defer func() {
		// What was sent last must arrive; a stream that does not end is cut off.
		cut := time.AfterFunc(stopTimeout, server.Stop)
		server.GracefulStop()
		cut.Stop()
		served.Wait()
		_ = os.Remove(path) // the listener has removed it, unless it was replaced
	}()
	if way == byRegister {
		if err := l.registrar.register(ctx, l.resource, path); err != nil {
			return err
		}
	}
	l.log.Debug("serving", "road", way.String(), "socket", path)
	return l.attend(ctx, way, again, streams, refusals)
}

// attend waits for the end of an attempt.
func (l *lifecycle) attend(ctx context.Context, way road, again <-chan struct{}, streams *gauge, refusals <-chan error) error {
	patience := time.NewTimer(l.registrar.patience)
	defer patience.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-again:
			return nil
		case err := <-refusals:
			return err
		case <-streams.changed:
			if streams.open() > 0 {
				l.registrar.connected(way)
				patience.Stop()
				continue
			}
			if way == byRegister {
				return errors.New("the kubelet has closed its stream") // and does not come back by itself
			}
			patience.Reset(l.registrar.patience)
		case <-patience.C:
			switch {
			case streams.open() > 0:
			case !l.registrar.alive():
				patience.Reset(l.registrar.patience) // it will find the socket when it starts
			default:
				l.registrar.missed()
				return fmt.Errorf("the kubelet did not connect within %s", l.registrar.patience)
			}
		}
	}
}

// connection is the service on one socket: it counts the streams there.
type connection struct {
	*service
	streams *gauge
}

func (c *connection) ListAndWatch(empty *plugin.Empty, stream plugin.DevicePlugin_ListAndWatchServer) error {
	c.streams.add(1)
	defer c.streams.add(-1)
	return c.service.ListAndWatch(empty, stream)
}

// announcement tells the kubelet's plugin watcher what is served on a socket.
type announcement struct {
	registration.UnimplementedRegistrationServer
	resource string
	refusals chan<- error
}

func (a *announcement) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type:              registration.DevicePlugin,
		Name:              a.resource,
		SupportedVersions: []string{plugin.Version},
	}, nil
}

func (a *announcement) NotifyRegistrationStatus(_ context.Context, s *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	if !s.GetPluginRegistered() {
		select {
		case a.refusals <- fmt.Errorf("the kubelet refuses %s: %s", a.resource, s.GetError()):
		default:
		}
	}
	return &registration.RegistrationStatusResponse{}, nil
}

// gauge counts what is open and says when that changes.
type gauge struct {
	mu      sync.Mutex
	count   int
	changed chan struct{} // has room for one
}

func newGauge() *gauge { return &gauge{changed: make(chan struct{}, 1)} }

func (g *gauge) add(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count += n
	select {
	case g.changed <- struct{}{}:
	default:
	}
}

func (g *gauge) open() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.count
}
