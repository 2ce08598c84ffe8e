// Plc is a virtual programmable logic controller: an OPC UA server that controls an oven.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

const manual = `plc is a virtual programmable logic controller: an OPC UA server that controls an
oven. It has these variables:

  ns=1;s=temperature  degrees Celsius; approaches the setpoint
  ns=1;s=setpoint     degrees Celsius; can be written
  ns=1;s=power        the share of the heater's power that is in use, 0 to 1
  ns=1;s=pieces       the pieces that were baked, one in a while

Clients are anonymous, and there is no encryption: it is a toy.

Flags:
`

// options are the settings of the command line.
type options struct {
	host        string
	port        int
	name, uri   string
	temperature float64
	setpoint    float64
	speed       float64
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	o, err := parse(os.Args[1:], os.Stdout)
	if err == nil {
		err = run(ctx, o)
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "plc:", err)
		os.Exit(1)
	}
}

// parse reads the command line.
func parse(arguments []string, help io.Writer) (options, error) {
	var o options
	var endpoint string
	flags := flag.NewFlagSet("plc", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&endpoint, "endpoint", "opc.tcp://127.0.0.1:4840", "`URL` to listen at, which clients also use")
	flags.StringVar(&o.name, "name", "Oven", "`name` of the application")
	flags.StringVar(&o.uri, "uri", "", "`URI` of the application; default: urn:akri:plc:NAME")
	flags.Float64Var(&o.temperature, "temperature", 20, "`degrees` at the beginning")
	flags.Float64Var(&o.setpoint, "setpoint", 180, "`degrees` that the oven is to reach")
	flags.Float64Var(&o.speed, "speed", 1, "how much faster time runs, as a `factor`")
	err := flags.Parse(arguments)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(help, manual)
		flags.SetOutput(help)
		flags.PrintDefaults()
		return o, err
	case err != nil:
		return o, err
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q: there are only flags, see plc --help", flags.Arg(0))
	case o.speed <= 0:
		return o, fmt.Errorf("--speed: %v is not a factor: use a number above 0", o.speed)
	}
	if o.uri == "" {
		o.uri = "urn:akri:plc:" + url.PathEscape(o.name)
	}
	o.host, o.port, err = split(endpoint)
	if err != nil {
		return o, fmt.Errorf("--endpoint: %q: %w: use one such as opc.tcp://10.1.2.3:4840", endpoint, err)
	}
	return o, nil
}

// split returns host and port of an endpoint.
func split(endpoint string) (host string, port int, err error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return "", 0, errors.New("not a URL")
	}
	if u.Scheme != "opc.tcp" || u.Hostname() == "" || u.Port() == "" || u.Path != "" && u.Path != "/" {
		return "", 0, errors.New("not an endpoint with the scheme opc.tcp, a host and a port, without a path")
	}
	port, err = strconv.Atoi(u.Port())
	if err != nil || port < 1 || port > 65535 {
		return "", 0, errors.New("the port is out of range")
	}
	return u.Hostname(), port, nil
}

// run serves the oven until ctx is done.
func run(ctx context.Context, o options) error {
	certificate, err := newCertificate(o.name, o.uri)
	if err != nil {
		return err
	}
	plant := newOven(o.temperature, o.setpoint, o.speed, time.Now())
	server := newServer(o, certificate, plant)
	if err := server.Start(ctx); err != nil {
		return fmt.Errorf("listen at %s: %w", net.JoinHostPort(o.host, strconv.Itoa(o.port)), err)
	}
	slog.Info("Serving an oven", "endpoint", server.URLs(), "name", o.name, "uri", o.uri)
	<-ctx.Done()
	_ = server.Close() // it reports connections that clients have closed
	return nil
}
