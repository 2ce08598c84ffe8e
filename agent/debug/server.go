package debug

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"akri.sh/akri/internal/version"
)

// Source provides the parts of a State. Its functions are called by one goroutine per
// request, and must not block for longer than the context allows.
type Source struct {
	// Node is the name of the node.
	Node string
	// Ready returns the reason why the agent is not ready, or nil.
	Ready          func() error
	Handlers       func() []Handler
	Configurations func() []Configuration
	Kubernetes     func() Kubernetes
	// Slots is nil if nothing is offered to the kubelet.
	Slots  func(context.Context) (Slots, error)
	Recent *Recent
}

// Server serves the state of an agent. A nil Server is turned off.
type Server struct {
	listener net.Listener
	source   Source
	started  time.Time
	log      *slog.Logger
}

// Listen listens on a loopback address. It returns nil if address is empty or "0".
func Listen(address string, source Source, log *slog.Logger) (*Server, error) {
	if address == "" || address == "0" {
		return nil, nil
	}
	const remedy = "set --debug-address to a free port of 127.0.0.1, or to 0 to turn the endpoint off"
	resolved, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("debug endpoint: %w: %s", err, remedy)
	}
	if !resolved.IP.IsLoopback() {
		return nil, fmt.Errorf("debug endpoint: %s is not a loopback address, and the endpoint is not authenticated: %s", address, remedy)
	}
	listener, err := net.Listen("tcp", resolved.String())
	if err != nil {
		return nil, fmt.Errorf("debug endpoint: %w: %s", err, remedy)
	}
	return &Server{listener: listener, source: source, started: time.Now(), log: log}, nil
}

// Address returns the address that the server listens on.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Close releases the address.
func (s *Server) Close() {
	if s != nil {
		s.listener.Close()
	}
}

// Run serves until ctx is done.
func (s *Server) Run(ctx context.Context) error {
	if s == nil {
		return nil
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Path, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(s.collect(r.Context())); err != nil {
			s.log.Debug("Could not send the state", "err", err)
		}
	})
	const timeout = 10 * time.Second
	server := &http.Server{
		Handler: mux, ReadTimeout: timeout, WriteTimeout: timeout, IdleTimeout: timeout,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	stopped := context.AfterFunc(ctx, func() { server.Close() })
	defer stopped()
	if err := server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the debug endpoint: %w", err)
	}
	return nil
}

// collect returns the state. A part that does not answer in time is reported as
// unavailable: that is when the state matters most.
func (s *Server) collect(ctx context.Context) State {
	const timeout = 3 * time.Second
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	state := State{
		Node: s.source.Node, Version: version.String(), Started: s.started, Time: time.Now(),
		Handlers: s.source.Handlers(), Configurations: s.source.Configurations(),
		Kubernetes: s.source.Kubernetes(), Errors: s.source.Recent.Records(),
	}
	if err := s.source.Ready(); err != nil {
		state.NotReady = err.Error()
	}
	if s.source.Slots == nil {
		return state
	}
	slots, err := s.source.Slots(ctx)
	if err != nil {
		slots.Unavailable = err.Error()
	}
	state.Slots = slots
	return state
}
