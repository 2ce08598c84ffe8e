package agent_test

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"akri.sh/akri/agent/discover/registry"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/debugecho"
)

// startOnNetwork starts debugEcho on the network.
func (n *node) startOnNetwork() (stop func()) {
	n.t.Helper()
	host, text, err := net.SplitHostPort(freeAddress(n.t))
	if err != nil {
		n.t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		n.t.Fatal(err)
	}
	return n.start("handler", func(ctx context.Context) error {
		return discovery.Serve(ctx, debugecho.Name, debugecho.Handler{AvailabilityFile: n.availability},
			discovery.Options{Shared: true, Dir: n.directory, Host: host, Port: port, Logger: slog.New(slog.DiscardHandler)})
	})
}

// The Configuration says why a handler may not register, also if it was missing before. The
// reason goes when it registers.
func TestRefusedHandlerIsReported(t *testing.T) {
	w := newWorld(t)
	n := w.node("n")
	n.missingDelay = 100 * time.Millisecond
	n.startAgent()
	w.configure("echo", "descriptions: []", nil)
	says := func(what string) {
		t.Helper()
		w.eventually("the Configuration says: "+what, func() bool {
			found := w.failures("echo")
			return len(found) == 1 && strings.Contains(found[0].Message, what)
		})
	}
	says(v0.MessageHandlerMissing)
	n.startOnNetwork()
	says("the discovery handler may not register: ")
	says("run the agents with --allow-network-handlers=CIDR (agent.networkHandlers in the chart)")
	n.startHandler(true)
	w.eventually("it has registered", func() bool { return len(w.failures("echo")) == 0 })
}

// A node that refuses a handler says so although another node has found devices with it.
func TestRefusedHandlerIsReportedNextToOthers(t *testing.T) {
	w := newWorld(t)
	works := w.node("works")
	works.startAgent()
	works.startHandler(true)
	echo := w.configure("echo", "descriptions: [one]", nil)
	w.eventually("the device is found", func() bool { return len(w.instances()) == 1 })
	found := []byte(`{"status": {"instances": 1}}`) // what the controller writes
	if _, err := w.client.Resource(v0.ConfigurationResource).Namespace(w.namespace).Patch(t.Context(), echo.GetName(), types.MergePatchType,
		found, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	refuses := w.node("refuses")
	refuses.startAgent()
	refuses.startOnNetwork()
	w.eventually("the Configuration says why", func() bool {
		found := w.failures("echo")
		return len(found) == 1 && strings.HasSuffix(found[0].Node, "refuses") &&
			strings.Contains(found[0].Message, "the discovery handler may not register: ")
	})
}

// A handler on the network registers at a permitted address and is served. It waits when no
// Configuration uses it, and goes offline when it ends.
func TestHandlerOnTheNetwork(t *testing.T) {
	w := newWorld(t)
	n := w.node("n")
	n.network = registry.Network{Addresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	n.metrics = freeAddress(t)
	n.startAgent()
	stop := n.startOnNetwork()
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
