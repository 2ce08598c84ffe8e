package handlers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/kubebox/clustertest"
	"akri.sh/akri/kubebox/image"
)

// TestShifuOPCUA runs the example shifu/opcua with a stand-in for Shifu's twin: a PLC that
// is found gets a twin, whose paths answer with the PLC's values at the name of its Service,
// and which writes the phase that makes the Instance ready.
func TestShifuOPCUA(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t, "opcua")
	plc := w.plc()
	w.installShifu("opcua")
	const url = "opc.tcp://" + bridgeAddress + ":4844"
	stop := w.peer(nil, plc, "--endpoint="+url, "--name=Mixer")
	w.applyShifu("opcua", "plc", "{opcuaDiscoveryMethod: {standard: {discoveryUrls: ['"+url+"']}}, intervalSeconds: 1}")
	mixer := w.awaitTwin("OPCUA_DISCOVERY_URL", url)
	ask := w.client()
	for path, want := range map[string]func(string) bool{
		"/get_state":   func(s string) bool { return s == "0" },           // running
		"/get_product": func(s string) bool { return s == "Virtual PLC" }, // of the PLC's build information
		"/get_time": func(s string) bool {
			now, err := time.Parse("2006-01-02 15:04:05.9999999 -0700 MST", s)
			return err == nil && time.Since(now).Abs() < time.Hour
		},
	} {
		if answer, err := ask(mixer, path); err != nil || !want(answer) {
			t.Errorf("%s: %q, %v", path, answer, err)
		}
	}
	if _, err := ask(mixer, "/no_instruction"); err == nil {
		t.Error("an instruction that does not exist was answered")
	}
	stop()
	w.awaitNoTwin("OPCUA_DISCOVERY_URL")
}

// TestShifuHTTP runs the example shifu/http with a stand-in for Shifu's twin and a web
// server as a sensor: the twin's paths answer as the sensor does, and it writes whether
// the sensor works.
func TestShifuHTTP(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t, "http")
	w.installShifu("http")
	root := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("found", "a sensor")
	write("status", "works")
	write("temperature", "20.5")
	write("secret", "of the sensor")
	const port = "8098"
	const url = "http://" + bridgeAddress + ":" + port + "/found"
	stop := w.peer([]string{"PYTHONUNBUFFERED=1"}, "python3", "-m", "http.server", port, "--bind", bridgeAddress, "--directory", root)
	w.applyShifu("http", "sensor", "{urls: ['"+url+"'], intervalSeconds: 1, misses: 2}")
	sensor := w.awaitTwin("HTTP_URL", url)
	ask := w.client()
	for path, want := range map[string]string{"/status": "works", "/temperature": "20.5"} {
		if answer, err := ask(sensor, path); err != nil || answer != want {
			t.Errorf("%s: %q, %v, want %q", path, answer, err, want)
		}
	}
	write("temperature", "21")
	if answer, err := ask(sensor, "/temperature"); err != nil || answer != "21" {
		t.Errorf("the temperature has changed: %q, %v", answer, err)
	}
	if answer, err := ask(sensor, "/secret"); err == nil {
		t.Errorf("a path that is no instruction was answered with %q", answer)
	}

	// The sensor is found, but does not work: the twin says so, and the Instance waits.
	if err := os.Remove(filepath.Join(root, "status")); err != nil {
		t.Fatal(err)
	}
	w.eventually("the EdgeDevice is Failed", func() string { return w.phase(sensor, "Failed") })
	w.kubectl("wait", "--for=condition=Ready=false", "--timeout="+timeout.String(), "instance/"+sensor)
	write("status", "works")
	w.eventually("the EdgeDevice is Running again", func() string { return w.phase(sensor, "Running") })
	w.kubectl("wait", "--for=condition=Ready", "--timeout="+timeout.String(), "instance/"+sensor)
	stop()
	w.awaitNoTwin("HTTP_URL")
}

// installShifu creates what the examples of Shifu need, with a twin for a protocol.
func (w *world) installShifu(protocol string) {
	w.t.Helper()
	w.loadTwin(protocol)
	crd, err := os.ReadFile(filepath.Join("testdata", "edgedevices.yaml"))
	if err != nil {
		w.t.Fatal(err)
	}
	const name = "crd/edgedevices.shifu.edgenesis.io"
	w.kubectl("wait", "--for=delete", "--timeout="+timeout.String(), name) // of a test before
	w.apply(string(crd))
	w.apply(w.example("shifu/rbac.yaml", "twins", ""))
	w.t.Cleanup(func() { w.deleteShifu() })
	w.kubectl("wait", "--for=condition=Established", "--timeout="+timeout.String(), name)
}

// applyShifu applies an example's Configuration, with other details.
func (w *world) applyShifu(example, name, details string) {
	w.t.Helper()
	configuration := strings.ReplaceAll(w.example("shifu/"+example+"/configuration.yaml", "twins", details),
		"name: "+name+"\n", "name: "+w.unique(name)+"\n")
	w.eventually("admission", func() string { // the webhook notices the kind, and roles are aggregated
		_, err := w.KubectlInput(w.ctx, []byte(configuration), "apply", "--server-side", "-f", "-")
		if err != nil {
			return err.Error()
		}
		return ""
	})
}

// awaitTwin waits until a device is found and has a twin, whose phase makes the Instance
// ready, and returns their name.
func (w *world) awaitTwin(property, value string) string {
	w.t.Helper()
	name := byProperty(w.await(property, value), property, value)
	w.eventually("the EdgeDevice is Running", func() string { return w.phase(name, "Running") })
	w.kubectl("wait", "--for=condition=Ready", "--timeout="+timeout.String(), "instance/"+name)
	return name
}

// awaitNoTwin waits until a device that was switched off is gone, and its objects are, too.
func (w *world) awaitNoTwin(property string) {
	w.t.Helper()
	w.await(property)
	w.eventually("all objects are deleted", func() string {
		return w.kubectl("get", "edgedevices,deployments,services", "--output=name")
	})
}

// client starts a Pod, and returns a function that requests a path in it from a Service,
// by its name, and returns the first line of the response.
func (w *world) client() (ask func(service, path string) (string, error)) {
	w.t.Helper()
	clustertest.NeedServices(w.t, w.Cluster)
	w.apply(`
apiVersion: v1
kind: Pod
metadata: {name: client}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: c, image: "akri.local/workload:1"}]
`)
	w.kubectl("wait", "--for=condition=Ready", "--timeout="+timeout.String(), "pod/client")
	return func(service, path string) (string, error) {
		line, err := w.Kubectl(w.ctx, "--namespace", w.namespace, "exec", "client", "--", "/workload", "get", "1", "http://"+service+path)
		return strings.TrimSuffix(string(line), "\n"), err
	}
}

// loadTwin loads the stand-in for Shifu's twin, under the name of Shifu's image.
func (w *world) loadTwin(protocol string) {
	w.t.Helper()
	program := filepath.Join(w.t.TempDir(), "twin")
	command := exec.CommandContext(w.ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, "./examples/shifu/twin")
	command.Dir = install.programs.Root
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		w.t.Fatalf("build the twin: %v: %s", err, output)
	}
	err := image.Write(program+".tar", image.Image{
		Name:       "edgehub/deviceshifu-http-" + protocol + ":v0.101.0",
		Files:      map[string]string{"/program": program},
		Entrypoint: []string{"/program"},
	})
	if err == nil {
		err = w.Load(w.ctx, program+".tar")
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// phase returns "" if an EdgeDevice has a phase.
func (w *world) phase(name, want string) string {
	got, err := w.Kubectl(w.ctx, "--namespace", w.namespace, "get", "edgedevice", name, "--output=jsonpath={.status.edgedevicephase}")
	if err != nil {
		return err.Error()
	}
	if string(got) != want {
		return fmt.Sprintf("it is %q", got)
	}
	return ""
}

// deleteShifu deletes what is not in the test's namespace. The Configuration goes first:
// without the permissions, the controller could not delete its objects.
func (w *world) deleteShifu() {
	after := *w
	ctx, cancel := after.cleanupContext()
	defer cancel()
	after.ctx = ctx
	after.kubectl("delete", "configurations", "--all", "--wait=true", "--timeout=60s")
	after.kubectl("delete", "crd/edgedevices.shifu.edgenesis.io", "clusterrole/akri-controller-shifu", "--wait=false")
}
