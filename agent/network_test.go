package agent_test

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"akri.sh/akri/agent/discover/registry"
	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/debugecho"
)

// A handler on the network registers at a permitted address and is served. It waits when no
// Configuration uses it, and goes offline when it ends.
func TestHandlerOnTheNetwork(t *testing.T) {
	w := newWorld(t)
	n := w.node("n")
	n.network = registry.Network{Addresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	n.metrics = freeAddress(t)
	n.startAgent()
	address := freeAddress(t)
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	stop := n.start("handler", func(ctx context.Context) error {
		return discovery.Serve(ctx, debugecho.Name, debugecho.Handler{AvailabilityFile: n.availability},
			discovery.Options{Shared: true, Dir: n.directory, Host: host, Port: port, Logger: slog.New(slog.DiscardHandler)})
	})
	state := func(want string) {
		t.Helper()
		w.eventually("the handler is "+want, func() bool {
			_, metrics := get(n.metrics, "/metrics")
			return strings.Contains(metrics, `akri_discovery_handlers{discovery_handler_name="debugEcho",state="`+want+`"} 1`)
		})
	}
	state("Waiting")
	w.configure("echo", "descriptions: [foo0]", nil)
	w.awaitDevices("foo0")
	w.eventually("the device is offered", func() bool {
		devices := n.sink.of(w.namespace, "echo")
		return len(devices) == 1 && devices[0].Online
	})
	state("Active")
	w.remove("echo")
	w.awaitDevices()
	state("Waiting")

	w.configure("echo", "descriptions: [foo1]", nil)
	w.awaitDevices("foo1")
	stop()
	state("Offline")
	w.awaitDevices("foo1") // it may come back
}
