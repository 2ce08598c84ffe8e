// Camera is a virtual ONVIF camera: other programs discover it by WS-Discovery, and read
// moving pictures from it. It is for demonstrations and tests.
package main

import (
	"context"
	"crypto/sha1"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"akri.sh/akri/examples/devices/camera/services"
	"akri.sh/akri/examples/devices/camera/wsdiscovery"
)

const manual = `camera is a virtual ONVIF camera. It answers WS-Discovery, says Hello when it
starts and Bye when it ends, and serves the device service, the media service,
pictures and a stream of pictures (Motion JPEG) by HTTP.

Discovery works only where multicast does: in a Pod, set hostNetwork: true. Give
cameras on the same machine different ports.

The user name and the password are read from the environment, where a Secret puts
them: CAMERA_USERNAME and CAMERA_PASSWORD. Without them, everything is open.

Example:
  camera --name=hall --address=192.0.2.10 --port=8881

Flags:
`

// options are the settings of the command line and the environment.
type options struct {
	identity           services.Identity
	device             string
	port               int
	username, password string
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
	o := options{username: environment("CAMERA_USERNAME"), password: environment("CAMERA_PASSWORD")}
	id := &o.identity
	flags := flag.NewFlagSet("camera", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&id.Name, "name", "camera", "`name` in pictures and scopes")
	flags.StringVar(&id.UUID, "uuid", "", "`UUID`; empty: one that follows from the name")
	flags.StringVar(&id.Location, "location", "demo", "`place` in the scopes")
	flags.StringVar(&id.Manufacturer, "manufacturer", "Akri", "manufacturer in the device `information`")
	flags.StringVar(&id.Model, "model", "Virtual-Camera", "model in the device `information` and the scopes")
	flags.StringVar(&o.device, "interface", "", "network `interface`; empty: that of --address, or the first that is up and not the loopback")
	flags.StringVar(&id.Address, "address", "", "IPv4 `address` to serve at; empty: the first one of the interface")
	flags.IntVar(&o.port, "port", 8881, "`port` to serve at")
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
		return o, fmt.Errorf("unexpected argument %q: there are only flags, see camera --help", flags.Arg(0))
	case id.Name == "":
		return o, errors.New("--name is empty: give the camera a name")
	case o.username == "" && o.password != "":
		return o, errors.New("CAMERA_PASSWORD is set, but CAMERA_USERNAME is not: set both or none")
	}
	if id.UUID == "" {
		id.UUID = uuidOf(id.Name)
	}
	id.Serial, id.Firmware = id.UUID[:min(8, len(id.UUID))], "1.0"
	return o, nil
}

// uuidOf returns the UUID of a name: a camera keeps it when it restarts.
func uuidOf(name string) string {
	sum := sha1.Sum([]byte("akri.sh/examples/camera/" + name))
	sum[6], sum[8] = sum[6]&0x0f|0x50, sum[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// run serves the camera until ctx is done.
func run(ctx context.Context, o options) error {
	device, address, err := choose(o.device, o.identity.Address)
	if err != nil {
		return err
	}
	prefix, _ := address.Mask.Size()
	o.identity.Interface, o.identity.MAC = device.Name, device.HardwareAddr.String()
	o.identity.Address, o.identity.PrefixLength = address.IP.String(), prefix

	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(o.identity.Address, strconv.Itoa(o.port)))
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{
		Handler:           services.New(o.identity, services.NewUsers(o.username, o.password, time.Now), time.Now),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	target := wsdiscovery.Target{
		UUID:   o.identity.UUID,
		Types:  []wsdiscovery.Type{wsdiscovery.VideoTransmitter, wsdiscovery.Device},
		Scopes: o.identity.Scopes(),
		XAddr:  "http://" + listener.Addr().String() + services.DevicePath,
	}
	slog.Info("The camera is on", "name", o.identity.Name, "uuid", target.UUID, "url", target.XAddr, "interface", device.Name)
	group, ctx := errgroup.WithContext(ctx)
	// Bye comes after the server has ended, because who hears it may ask whether it is true.
	announced, withdraw := context.WithCancel(context.WithoutCancel(ctx))
	defer withdraw()
	group.Go(func() error { return wsdiscovery.Run(announced, device, target) })
	group.Go(func() error { return server.Serve(listener) })
	group.Go(func() error {
		<-ctx.Done()
		err := server.Close() // clients of the stream do not leave by themselves
		withdraw()
		return err
	})
	if err := group.Wait(); !errors.Is(err, context.Canceled) && !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	slog.Info("The camera is off", "name", o.identity.Name)
	return nil
}

// choose returns the interface and the address that the options select. Both may be
// empty.
func choose(name, address string) (*net.Interface, *net.IPNet, error) {
	devices, err := net.Interfaces()
	if err != nil {
		return nil, nil, fmt.Errorf("list the network interfaces: %w", err)
	}
	for _, device := range devices {
		chosen := name != "" || address != ""
		unwanted := name != "" && device.Name != name || !chosen && device.Flags&net.FlagLoopback != 0
		if unwanted || device.Flags&net.FlagUp == 0 {
			continue
		}
		addresses, err := device.Addrs()
		if err != nil {
			return nil, nil, fmt.Errorf("list the addresses of %s: %w", device.Name, err)
		}
		for _, each := range addresses {
			network, ok := each.(*net.IPNet)
			if ok && network.IP.To4() != nil && (address == "" || network.IP.Equal(net.ParseIP(address))) {
				return &device, network, nil
			}
		}
	}
	return nil, nil, fmt.Errorf("no network interface that is up has name %q and IPv4 address %q (empty: any): "+
		"correct --interface or --address", name, address)
}
