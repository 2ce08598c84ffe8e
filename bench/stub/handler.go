package stub

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/protocol"
)

// Handler is a discovery handler with the devices of a measurement. One handler may
// serve many agents.
type Handler struct {
	name, dir string
	shared    bool

	mu      sync.Mutex
	devices []discovery.Device
	changed chan struct{} // closed when devices changes
	streams int
}

// NewHandler returns a handler that listens in a directory. Shared means that all
// agents see the same devices.
func NewHandler(name, dir string, shared bool) *Handler {
	return &Handler{name: name, dir: dir, shared: shared, changed: make(chan struct{})}
}

// Set replaces the devices and sends them to all agents.
func (h *Handler) Set(devices []discovery.Device) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.devices = devices
	close(h.changed)
	h.changed = make(chan struct{})
}

// Streams returns the number of open streams.
func (h *Handler) Streams() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.streams
}

// Serve serves the handler until ctx is done, in its directory, which it creates. An
// agent whose socket is in the same directory needs no call of Register.
func (h *Handler) Serve(ctx context.Context) error {
	if err := os.MkdirAll(h.dir, 0o700); err != nil {
		return fmt.Errorf("serve the handler: %w", err)
	}
	return discovery.Serve(ctx, h.name, h, discovery.Options{Shared: h.shared, Dir: h.dir, Logger: slog.New(slog.DiscardHandler)})
}

// Discover implements [discovery.Handler].
func (h *Handler) Discover(ctx context.Context, _ discovery.Request, send func([]discovery.Device) error) error {
	h.open(1)
	defer h.open(-1)
	for {
		h.mu.Lock()
		devices, changed := h.devices, h.changed
		h.mu.Unlock()
		if err := send(devices); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

func (h *Handler) open(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.streams += n
}

// Register registers the handler with the agent whose registration socket is in a
// directory. It waits until both sockets exist.
func (h *Handler) Register(ctx context.Context, agentDir string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	endpoint, agent := filepath.Join(h.dir, h.name+".sock"), filepath.Join(agentDir, protocol.RegistrationSocket)
	for _, socket := range []string{endpoint, agent} {
		if err := awaitFile(ctx, socket); err != nil {
			return fmt.Errorf("register the handler: %w", err)
		}
	}
	conn, err := grpc.NewClient("unix://"+agent, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("register the handler: %w", err)
	}
	defer conn.Close()
	_, err = protocol.NewRegistrationClient(conn).RegisterDiscoveryHandler(ctx,
		&protocol.RegisterDiscoveryHandlerRequest{Name: h.name, Endpoint: endpoint, Shared: h.shared})
	if err != nil {
		return fmt.Errorf("register the handler at %s: %w", agent, err)
	}
	return nil
}

// awaitFile polls until a file exists.
func awaitFile(ctx context.Context, path string) error {
	for {
		_, err := os.Stat(path)
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", path, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Devices returns count devices.
func Devices(count int) []discovery.Device {
	devices := make([]discovery.Device, count)
	for i := range devices {
		devices[i] = discovery.Device{
			ID:         fmt.Sprintf("bench-%04d", i),
			Properties: map[string]string{"BENCH_DEVICE": fmt.Sprintf("/dev/bench%d", i)},
		}
	}
	return devices
}
