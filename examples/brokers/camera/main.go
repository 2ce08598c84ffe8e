// Camera is a broker for ONVIF cameras: it fetches pictures from one camera and serves a
// web page with the live picture.
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

	"akri.sh/akri/examples/brokers/camera/live"
	"akri.sh/akri/examples/brokers/camera/onvif"
)

const manual = `camera is a broker for ONVIF cameras. It fetches pictures from one camera and
serves:

  /              a page with the live picture, or the reason why there is none
  /snapshot.jpg  the current picture; 204 if there is none
  /status.json   the camera's name, and why there is no picture
  /healthz       200 while the broker runs

It reads its settings from the environment:

  ONVIF_DEVICE_SERVICE_URL          the camera, as Akri sets it in containers
                                    that request a device
  CAMERA_USERNAME, CAMERA_PASSWORD  its credentials, from a Secret; empty: none

Flags:
`

// options are the settings of the command line and the environment.
type options struct {
	listen                  string
	interval                time.Duration
	url, username, password string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	o, err := parse(os.Args[1:], os.Getenv, os.Stdout)
	if err == nil {
		err = run(ctx, o)
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "camera:", err)
		os.Exit(1)
	}
}

// parse reads the command line and the environment.
func parse(arguments []string, environment func(string) string, help io.Writer) (options, error) {
	o := options{
		url:      environment("ONVIF_DEVICE_SERVICE_URL"),
		username: environment("CAMERA_USERNAME"),
		password: environment("CAMERA_PASSWORD"),
	}
	flags := flag.NewFlagSet("camera", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.listen, "listen", ":8080", "`address` to serve at")
	flags.DurationVar(&o.interval, "interval", 400*time.Millisecond, "`time` between two pictures while somebody looks")
	err := flags.Parse(arguments)
	const minInterval = 50 * time.Millisecond
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(help, manual)
		flags.SetOutput(help)
		flags.PrintDefaults()
		return o, err
	case err != nil:
		return o, err
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q: there are only flags, see camera --help", flags.Arg(0))
	case o.url == "":
		return o, errors.New("ONVIF_DEVICE_SERVICE_URL is not set: request a camera in the container's resources, so that Akri sets it")
	case o.interval < minInterval:
		return o, fmt.Errorf("--interval: %v is too short: use at least %v", o.interval, minInterval)
	}
	return o, nil
}

// run serves the page until ctx is done.
func run(ctx context.Context, o options) error {
	client, err := onvif.New(o.url, o.username, o.password)
	if err != nil {
		return fmt.Errorf("ONVIF_DEVICE_SERVICE_URL: %w", err)
	}
	defer client.Close()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", o.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	feed := live.NewFeed(client, o.url, o.interval)
	server := &http.Server{
		Handler:           live.NewHandler(feed),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	slog.Info("Serving the camera's picture", "address", listener.Addr().String(), "camera", o.url)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return feed.Run(ctx) })
	group.Go(func() error { return server.Serve(listener) })
	group.Go(func() error {
		<-ctx.Done()
		return server.Close() // a page asks again by itself
	})
	if err := group.Wait(); !errors.Is(err, context.Canceled) && !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
