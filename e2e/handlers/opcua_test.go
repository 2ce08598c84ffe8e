package handlers

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/e2e/peers"
	"akri.sh/akri/kubebox/build"
	"akri.sh/akri/kubebox/clustertest"
)

var (
	opcuaDetails = regexp.MustCompile(`(?m)^    discoveryDetails: .*\n(      .*\n)*`)
	temperature  = regexp.MustCompile(`(?m)^oven_temperature_celsius\{node="ns=1;s=temperature",server="([^"]*)"\} ([0-9.e+]+)$`)
)

// example returns a file of an example, in the test's namespace and with other details.
func (w *world) example(file, namespace, details string) string {
	w.t.Helper()
	root, err := build.Root()
	if err != nil {
		w.t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "examples", file))
	if err != nil {
		w.t.Fatal(err)
	}
	manifest := opcuaDetails.ReplaceAllString(string(text), "    discoveryDetails: \""+details+"\"\n")
	manifest = strings.ReplaceAll(manifest, "namespace: "+namespace+"\n", "namespace: "+w.namespace+"\n")
	return strings.ReplaceAll(manifest, "name: "+namespace+"\n", "name: "+w.namespace+"\n")
}

// unique returns a name that no other test uses: kubelets know Configurations
// by their names.
func (w *world) unique(name string) string { return name + strings.TrimPrefix(w.namespace, "handlers") }

// get returns what the Service of an Instance serves, or an error.
func (w *world) get(service, path string) (string, error) {
	text, err := w.Kubectl(w.ctx, "get", "--raw", fmt.Sprintf("/api/v1/namespaces/%s/services/%s:80/proxy%s", w.namespace, service, path))
	return string(text), err
}

// byProperty returns the name of the Instance with this value of a property.
func byProperty(found map[string]instanceView, property, value string) string {
	for name, each := range found {
		if each.Spec.BrokerProperties[property] == value {
			return name
		}
	}
	return ""
}

// TestOPCUA runs the example opcua: from PLCs that appear and disappear to the metrics of
// their brokers.
func TestOPCUA(t *testing.T) {
	w := newWorld(t, "opcua")
	plc := w.plc()
	const first, second = "opc.tcp://" + bridgeAddress + ":4840", "opc.tcp://" + bridgeAddress + ":4842"
	stop := w.peer(nil, plc, "--endpoint="+first, "--name=Oven 1", "--temperature=50", "--setpoint=60")
	details := fmt.Sprintf("{opcuaDiscoveryMethod: {standard: {discoveryUrls: ['%s/', '%s/']}}, intervalSeconds: 1}", first, second)
	name := w.unique("oven")
	w.apply(strings.ReplaceAll(w.example("opcua/configuration.yaml", "plant", details), "name: oven\n", "name: "+name+"\n"))

	found := w.await("OPCUA_DISCOVERY_URL", first)
	oven1 := byProperty(found, "OPCUA_DISCOVERY_URL", first)
	want := map[string]string{
		"OPCUA_DISCOVERY_URL": first, "OPCUA_APPLICATION_NAME": "Oven 1", "OPCUA_APPLICATION_URI": "urn:akri:plc:Oven%201",
		"OPCUA_PRODUCT_URI": "urn:github.com:gopcua:server", "OPCUA_ENDPOINTS": "None/None",
		"AKRI_DISPLAY_NAME": "Oven 1 at " + first,
	}
	if got := found[oven1].Spec.BrokerProperties; !maps.Equal(got, want) {
		t.Errorf("the properties are %v, want %v", got, want)
	}
	w.eventually("both nodes see the server", func() string {
		if nodes := w.instances()[oven1].Spec.Nodes; len(nodes) != 2 {
			return fmt.Sprint(nodes)
		}
		return ""
	})
	w.eventually("the broker's metric", func() string { return w.temperature(oven1, "Oven 1", 50, 60) })
	w.kubectl("wait", "--for=condition=Ready", "--timeout="+timeout.String(), "instance/"+oven1)

	// Another server appears, with a broker of its own.
	w.peer(nil, plc, "--endpoint="+second, "--name=Oven 2", "--temperature=150", "--setpoint=160")
	found = w.await("OPCUA_DISCOVERY_URL", first, second)
	oven2 := byProperty(found, "OPCUA_DISCOVERY_URL", second)
	w.eventually("the second broker's metric", func() string { return w.temperature(oven2, "Oven 2", 150, 160) })

	// The first is switched off.
	stop()
	w.await("OPCUA_DISCOVERY_URL", second)
	w.eventually("its broker is deleted", func() string {
		names := strings.Fields(w.kubectl("get", "deployments,services", "--output=name"))
		slices.Sort(names)
		want := []string{"deployment.apps/" + oven2, "service/" + oven2, "service/ovens"}
		if !slices.Equal(names, want) {
			return fmt.Sprintf("%q, want %q", names, want)
		}
		return ""
	})
	w.eventually("the other is unaffected", func() string { return w.temperature(oven2, "Oven 2", 150, 160) })
}

// temperature returns "" if the broker of an Instance exports a temperature in a range.
func (w *world) temperature(instance, server string, lowest, highest float64) string {
	text, err := w.get(instance, "/metrics")
	if err != nil {
		return err.Error()
	}
	match := temperature.FindStringSubmatch(text)
	if match == nil || match[1] != server {
		return "the metrics are\n" + text
	}
	if value, err := strconv.ParseFloat(match[2], 64); err != nil || value < lowest || value > highest {
		w.t.Errorf("the temperature of %s is %s, want %v to %v", server, match[2], lowest, highest)
	}
	return ""
}

// awaitListener waits until a peer listens.
func (w *world) awaitListener(address string, limit time.Duration) {
	w.t.Helper()
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		connection, err := w.Dial(w.ctx, "", "tcp", address)
		if err == nil {
			connection.Close()
			return
		}
		if time.Since(began) > limit {
			w.t.Fatalf("nothing listens at %s after %v: %v", address, limit, err)
		}
	}
}

// cleanupContext returns a context for what is done after the test, whose own context has
// ended.
func (w *world) cleanupContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(w.ctx), 2*timeout)
}

// TestOPCUADiscoveryServer uses another implementation: asyncua as a discovery server,
// and a server that has registered with it under a loopback URL.
func TestOPCUADiscoveryServer(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t, "opcua")
	root, err := build.Root()
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(root, "e2e", "handlers", "testdata", "opcua_servers.py")
	w.peer(peers.Python(t, "asyncua==2.1.0"), "python3", "-W", "ignore", script, bridgeAddress)
	w.awaitListener(bridgeAddress+":4855", 3*timeout) // asyncua needs long to start
	configure := func(name, details string) {
		w.apply(fmt.Sprintf(`
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: %s}
spec:
  discoveryHandler:
    name: opcua
    discoveryDetails: "%s"
`, w.unique(name), details))
	}
	const discovery, press = "opc.tcp://" + bridgeAddress + ":4841/discovery", "opc.tcp://" + bridgeAddress + ":4855/press"
	configure("all", "{opcuaDiscoveryMethod: {standard: {discoveryUrls: ['opc.tcp://"+bridgeAddress+":4841/']}}, intervalSeconds: 1}")
	found := w.await("OPCUA_DISCOVERY_URL", discovery, press)
	properties := found[byProperty(found, "OPCUA_DISCOVERY_URL", press)].Spec.BrokerProperties
	want := map[string]string{
		"OPCUA_DISCOVERY_URL": press, "OPCUA_APPLICATION_NAME": "Press", "OPCUA_APPLICATION_URI": "urn:plant:press",
		"OPCUA_PRODUCT_URI": "urn:freeopcua.github.io:python:server", "OPCUA_ENDPOINTS": "None/None",
		"AKRI_DISPLAY_NAME": "Press at " + press,
	}
	if !maps.Equal(properties, want) {
		t.Errorf("the properties are %v, want %v", properties, want)
	}

	// A filter; and the method network, which asyncua does not offer: no device, and no
	// failure of the others.
	configure("press", "{opcuaDiscoveryMethod: {standard: {discoveryUrls: ['opc.tcp://"+bridgeAddress+":4841/']}, "+
		"network: {discoveryUrls: ['opc.tcp://"+bridgeAddress+":4841/']}}, applicationNames: {action: Include, items: [Press]}}")
	w.await("OPCUA_DISCOVERY_URL", discovery, press, press)
}
