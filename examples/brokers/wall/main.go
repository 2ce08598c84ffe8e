// Wall is a video wall: a web page with the live pictures of all cameras, which it gets
// from their brokers.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

const manual = `wall is a video wall: a page with the live pictures of all cameras. It gets them
from the cameras' brokers, and serves:

  /                            the page, which shows cameras that come and go
  /cameras.json                the cameras, and why one has no picture
  /cameras/NAME/snapshot.jpg   the current picture of a camera; 204 if there is none
  /healthz                     200 while the program runs

The list of cameras is in the environment variable CAMERAS: NAME=URL, separated
by spaces, where URL is that of the broker's Service. A Configuration writes it
from INSTANCES, so that the Pod is replaced when the list changes. The program
goes on for some seconds after it is told to end, so that nobody notices that.

Flags:
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Getenv, os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "wall:", err)
		os.Exit(1)
	}
}

// run serves the page until ctx is done.
func run(ctx context.Context, arguments []string, environment func(string) string, help io.Writer) error {
	flags := flag.NewFlagSet("wall", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	listen := flags.String("listen", ":8080", "`address` to serve at")
	err := flags.Parse(arguments)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(help, manual)
		flags.SetOutput(help)
		flags.PrintDefaults()
		return err
	case err != nil:
		return err
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q: there are only flags, see wall --help", flags.Arg(0))
	}
	cameras, err := parseCameras(environment("CAMERAS"))
	if err != nil {
		return fmt.Errorf("CAMERAS: %w", err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", *listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	shown := newWall(cameras)
	defer shown.http.CloseIdleConnections()
	server := &http.Server{
		Handler:           shown.handler(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	slog.Info("Serving the wall", "address", listener.Addr().String(), "cameras", len(cameras))
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return server.Serve(listener) })
	group.Go(func() error {
		<-ctx.Done()
		return leave(context.WithoutCancel(ctx), server)
	})
	if err := group.Wait(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

const (
	// routed is how long requests reach a Pod that is deleted: nodes learn of it a moment
	// later.
	routed = 2 * time.Second
	// answered is how long answers may take at the end.
	answered = 2 * time.Second
)

// leave stops a server so that no request fails: it serves for a while, and each answer
// ends its connection, so that the client's next one is made to another Pod.
func leave(ctx context.Context, server *http.Server) error {
	server.SetKeepAlivesEnabled(false)
	time.Sleep(routed)
	ctx, cancel := context.WithTimeout(ctx, answered)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return errors.Join(err, server.Close())
	}
	return nil
}
