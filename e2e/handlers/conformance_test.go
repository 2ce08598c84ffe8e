package handlers

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"akri.sh/akri/kubebox/cluster"
	"akri.sh/akri/kubebox/clustertest"
)

// conformance has a row for each built-in handler: how the installed handler is checked
// with akri-discovery check, on a node.
var conformance = map[string]struct {
	// handler is the handler's name in Configurations. The key is its directory in config/.
	handler string
	// details are accepted, and invalid are refused.
	details string
	invalid []string
	// devices is how many devices the details must find in the test's cluster.
	devices int
}{
	"debug-echo": {
		handler: "debugEcho", details: "descriptions: [foo0, foo1]", devices: 2,
		invalid: []string{"", "discriptions: [foo0]", "descriptions: [foo0, foo0]", "http://10.0.0.1/list", "descriptions: ["},
	},
	"udev": {
		handler: "udev", details: `udevRules: ['KERNEL=="null"']`, devices: 1,
		invalid: []string{"", "udevRules: ['KERNEL==null']", "udevRule: []", "{udevRules: ['KERNEL==\"null\"'], permissions: wr}"},
	},
	"onvif": {
		handler: "onvif", details: "discoveryTimeoutSeconds: 1",
		invalid: []string{"discoveryTimeout: 1", "uuids: {action: include, items: []}", "ipAddresses: {action: Include}"},
	},
	"opcua": {
		handler: "opcua", // its first list waits for a server that does not answer
		details: "{opcuaDiscoveryMethod: {standard: {discoveryUrls: ['opc.tcp://" + bridgeAddress + ":4999/']}}, intervalSeconds: 1, misses: 1}",
		invalid: []string{"", "opcuaDiscoveryMethod: {standard: {discoveryUrls: [http://10.0.0.1/]}}", "opcuaDiscoveryMethod: {}"},
	},
	"mdns": {
		handler: "mdns", details: "services: [_akri-none._tcp]",
		invalid: []string{"", "services: [http]", "service: [_http._tcp]"},
	},
	"http": {
		handler: "http", details: "urls: [http://" + bridgeAddress + ":4998/]",
		invalid: []string{"", "urls: [file:///etc/passwd]", "url: [http://10.0.0.1/]"},
	},
}

// TestConformance checks each handler as it is installed, on a node with its agent.
func TestConformance(t *testing.T) {
	clustertest.Full(t)
	for name, tc := range conformance {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, name)
			w.conforms("/var/lib/akri/"+tc.handler+".sock", tc.details, tc.invalid, tc.devices)
		})
	}
}

// conforms runs akri-discovery check on the first node.
func (w *world) conforms(endpoint, details string, invalid []string, devices int) {
	w.t.Helper()
	dir := w.t.TempDir()
	write := func(name, text string) string {
		w.t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			w.t.Fatal(err)
		}
		return path
	}
	arguments := []string{
		filepath.Join(install.programs.Dir, "akri-discovery"), "check", "--endpoint=" + endpoint,
		"--details-file=" + write("details.yaml", details), "--min-devices=" + strconv.Itoa(devices), "--timeout=20s",
	}
	for i, text := range invalid {
		arguments = append(arguments, "--invalid-details-file="+write("invalid-"+strconv.Itoa(i)+".yaml", text))
	}
	var output, problem bytes.Buffer // they are written concurrently
	err := w.Exec(w.ctx, cluster.Command{Node: "node1", Args: arguments, Stdout: &output, Stderr: &problem})
	if err != nil || bytes.Contains(output.Bytes(), []byte("FAIL")) || !bytes.Contains(output.Bytes(), []byte("pass")) {
		w.t.Errorf("%s: %v\n%s%s", endpoint, err, output.String(), problem.String())
		return
	}
	w.t.Logf("%s:\n%s", endpoint, output.String())
}
