package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/wait"
	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"akri.sh/akri/internal/backoff"
)

const (
	// stopTimeout bounds how long a stopping server waits for open calls and
	// streams.
	stopTimeout = 300 * time.Millisecond
	// minRetryDelay and maxRetryDelay bound the back-off after a failed attempt.
	minRetryDelay = 200 * time.Millisecond
	maxRetryDelay = 10 * time.Second
)

// Serve serves a resource to the kubelet until ctx is done, on one socket after another and
// never on two at the same time.
func (r *Registrar) Serve(ctx context.Context, resource string, server deviceplugin.DevicePluginServer) {
	p := plugin{resource: resource, server: server, Registrar: r, log: r.log.With("resource", resource)}
	if err := checkName(p.resource); err != nil {
		p.log.Error("The kubelet does not accept the name of the resource; it is not offered", "err", err)
		<-ctx.Done()
		return
	}
	failures := 0
	for {
		started, began := p.nextStart(), time.Now()
		err := p.attempt(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > maxRetryDelay+connectTimeout {
			failures = 0 // the attempt had succeeded
		}
		delay := wait.Jitter(backoff.Delay(minRetryDelay, maxRetryDelay, failures), 0.1)
		failures++
		p.log.Warn("The kubelet does not use this socket; trying another one", "err", err, "after", delay)
		select {
		case <-ctx.Done():
			return
		case <-started:
			failures = 0
		case <-time.After(delay):
		}
	}
}

// plugin is a resource that is served.
type plugin struct {
	*Registrar

	resource string
	server   deviceplugin.DevicePluginServer
	log      *slog.Logger
}

// checkName reports why the kubelet refuses a resource, as its IsExtendedResourceName
// (pkg/apis/core/v1/helper) does.
func checkName(resource string) error {
	if problems := validation.IsQualifiedName("requests." + resource); len(problems) > 0 {
		return fmt.Errorf("%s: %s: use a shorter name for the Configuration", resource, strings.Join(problems, ", "))
	}
	return nil
}

// attempt serves on a new socket until ctx is done, or until the kubelet does not use the
// socket or has abandoned it, which is the error. When it returns, the kubelet's stream has
// ended and the socket is removed.
func (p *plugin) attempt(ctx context.Context) error {
	socket, err := socketPath(filepath.Join(p.kubeletDir, pluginsDir), p.resource)
	if err != nil {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return fmt.Errorf("listen for the kubelet: %w", err)
	}
	server := grpc.NewServer(grpc.WaitForHandlers(true))
	streams, failures, ended := make(chan int), make(chan error, 1), make(chan struct{})
	deviceplugin.RegisterDevicePluginServer(server, &connection{p.server, streams, ended})
	registration.RegisterRegistrationServer(server, &announcement{resource: p.resource, failures: failures})
	var served sync.WaitGroup
	served.Go(func() {
		if err := server.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			report(failures, err)
		}
	})
	defer func() {
		close(ended)
		// Let the last list arrive, but close a stream that does not end.
		cut := time.AfterFunc(stopTimeout, server.Stop)
		server.GracefulStop()
		cut.Stop()
		served.Wait()
		_ = os.Remove(socket) // the listener removes it, unless it was replaced
	}()
	p.log.Debug("Serving the resource", "socket", socket)
	return p.await(ctx, socket, streams, failures)
}

// await returns when an attempt ends; see attempt.
func (p *plugin) await(ctx context.Context, socket string, streams <-chan int, failures <-chan error) error {
	timer := time.NewTimer(p.timeout)
	defer timer.Stop()
	started, open := p.nextStart(), 0
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failures:
			return err
		case <-started: // a new kubelet has the whole time
			if deleted(socket) {
				return errDeleted
			}
			started = p.nextStart()
			timer.Reset(p.timeout)
		case change := <-streams:
			if open += change; open > 0 {
				timer.Stop()
				continue
			}
			if deleted(socket) {
				return errDeleted
			}
			timer.Reset(p.timeout)
		case <-timer.C:
			switch {
			case open > 0:
			case !p.alive():
				timer.Reset(p.timeout) // the kubelet finds the socket when it starts
			default:
				return p.notFound()
			}
		}
	}
}

var errDeleted = errors.New("the socket was deleted")

func deleted(socket string) bool {
	_, err := os.Lstat(socket)
	return errors.Is(err, fs.ErrNotExist)
}

// connection is the plugin's service on one socket. It reports the streams that the kubelet
// opens and closes, until the attempt has ended.
type connection struct {
	deviceplugin.DevicePluginServer
	streams chan<- int // 1 or -1
	ended   <-chan struct{}
}

func (c *connection) ListAndWatch(empty *deviceplugin.Empty, stream deviceplugin.DevicePlugin_ListAndWatchServer) error {
	c.report(1)
	err := c.DevicePluginServer.ListAndWatch(empty, stream)
	if err != nil || stream.Context().Err() != nil { // otherwise, the plugin is stopping and has sent its last list
		c.report(-1)
	}
	return err
}

func (c *connection) report(change int) {
	select {
	case c.streams <- change:
	case <-c.ended:
	}
}

// announcement describes the service on a socket to the kubelet's plugin watcher.
type announcement struct {
	registration.UnimplementedRegistrationServer
	resource string
	failures chan<- error
}

func (a *announcement) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type:              registration.DevicePlugin,
		Name:              a.resource,
		SupportedVersions: []string{deviceplugin.Version},
	}, nil
}

func (a *announcement) NotifyRegistrationStatus(
	_ context.Context, s *registration.RegistrationStatus,
) (*registration.RegistrationStatusResponse, error) {
	if !s.GetPluginRegistered() {
		report(a.failures, fmt.Errorf("the kubelet refused %s: %s", a.resource, s.GetError()))
	}
	return &registration.RegistrationStatusResponse{}, nil
}

// report sends the first failure and drops later ones.
func report(failures chan<- error, err error) {
	select {
	case failures <- err:
	default:
	}
}
