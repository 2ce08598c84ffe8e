// Twin stands for Shifu's deviceShifu of OPC UA servers and of HTTP devices, in tests, where
// Shifu's own cannot be had. It behaves like those as far as these examples can see, and is
// not meant for anything else.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// configDir is where the ConfigMap is mounted.
	configDir = "/etc/edgedevice/config"
	// address is constant in Shifu, too.
	address = ":8080"
	// phaseDelay is how long the twin waits before it writes its first result.
	phaseDelay = 5 * time.Second
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "twin:", err)
		os.Exit(1)
	}
}

// run reads the configuration once, as Shifu does, connects to the device, and serves its
// instructions until ctx is done or the device cannot be reached at the beginning.
func run(ctx context.Context) error {
	object, err := inCluster(os.Getenv("EDGEDEVICE_NAMESPACE"), os.Getenv("EDGEDEVICE_NAME"))
	if err != nil {
		return err
	}
	spec, err := object.spec(ctx)
	if err != nil {
		return err
	}
	config, err := readConfig(os.DirFS(configDir), spec.Protocol)
	if err != nil {
		return err
	}
	if err := object.setPhase(ctx, "Pending"); err != nil {
		slog.Warn("Could not write the phase", "err", err)
	}
	shown, err := connect(ctx, spec)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", spec.Address, err)
	}
	defer shown.close()

	server := &http.Server{Addr: address, Handler: routes(config, shown), ReadHeaderTimeout: 5 * time.Second}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		slog.Info("Serving the instructions of a device", "protocol", spec.Protocol, "device", spec.Address, "instructions", config.names())
		if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		return server.Close()
	})
	group.Go(func() error {
		watch(ctx, config, shown, object.setPhase, phaseDelay)
		return nil
	})
	return group.Wait()
}

// routes serves /health and a path for each instruction.
func routes(config twinConfig, shown device) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "Device is healthy") })
	for name, instruction := range config.instructions {
		serve := shown.handler(instruction)
		mux.HandleFunc("/"+name, func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), config.timeout)
			defer cancel()
			serve.ServeHTTP(w, r.WithContext(ctx))
		})
	}
	return mux
}

// watch reads the telemetries in turn, and writes the phase after each round: Running if
// all could be read, otherwise Failed. Without telemetries it is always Failed.
func watch(ctx context.Context, config twinConfig, shown device, setPhase func(context.Context, string) error, delay time.Duration) {
	for wait(ctx, delay); ctx.Err() == nil; wait(ctx, config.interval) {
		phase := "Running"
		if len(config.telemetries) == 0 {
			phase = "Failed"
		}
		for _, name := range config.telemetries {
			reading, cancel := context.WithTimeout(ctx, config.telemetryTimeout)
			if err := shown.check(reading, config.instructions[name]); err != nil {
				slog.Warn("A telemetry cannot be read", "instruction", name, "err", err)
				phase = "Failed"
			}
			cancel()
		}
		if err := setPhase(ctx, phase); err != nil && ctx.Err() == nil {
			slog.Warn("Could not write the phase", "err", err)
		}
	}
}

// wait waits for some time, or until ctx is done.
func wait(ctx context.Context, limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
