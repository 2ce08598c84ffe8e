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

// TestShifu runs the example shifu/opcua with a stand-in for Shifu's twin: a PLC that is
// found gets a twin, whose paths answer with the PLC's values, and which writes the phase
// that makes the Instance ready.
func TestShifu(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t, "opcua")
	plc := w.plc()
	w.loadTwin()
	crd, err := os.ReadFile(filepath.Join("testdata", "edgedevices.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	w.apply(string(crd))
	w.apply(w.example("shifu/rbac.yaml", "twins", ""))
	t.Cleanup(func() { w.deleteShifu() })
	w.kubectl("wait", "--for=condition=Established", "--timeout="+timeout.String(), "crd/edgedevices.shifu.edgenesis.io")

	const url = "opc.tcp://" + bridgeAddress + ":4844"
	stop := w.peer(nil, plc, "--endpoint="+url, "--name=Mixer")
	details := "{opcuaDiscoveryMethod: {standard: {discoveryUrls: ['" + url + "']}}, intervalSeconds: 1}"
	configuration := strings.ReplaceAll(w.example("shifu/opcua/configuration.yaml", "twins", details),
		"name: plc\n", "name: "+w.unique("plc")+"\n")
	w.eventually("admission", func() string { // the webhook notices the kind, and roles are aggregated
		_, err := w.KubectlInput(w.ctx, []byte(configuration), "apply", "--server-side", "-f", "-")
		if err != nil {
			return err.Error()
		}
		return ""
	})
	mixer := byProperty(w.await("OPCUA_DISCOVERY_URL", url), "OPCUA_DISCOVERY_URL", url)
	w.eventually("the EdgeDevice is Running", func() string { return w.phase(mixer, "Running") })
	w.kubectl("wait", "--for=condition=Ready", "--timeout="+timeout.String(), "instance/"+mixer)
	for path, want := range map[string]func(string) bool{
		"/get_state":   func(s string) bool { return s == "0" },           // running
		"/get_product": func(s string) bool { return s == "Virtual PLC" }, // of the PLC's build information
		"/get_time": func(s string) bool {
			now, err := time.Parse("2006-01-02 15:04:05.9999999 -0700 MST", s)
			return err == nil && time.Since(now).Abs() < time.Hour
		},
	} {
		if answer, err := w.get(mixer, path); err != nil || !want(answer) {
			t.Errorf("%s: %q, %v", path, answer, err)
		}
	}
	if _, err := w.get(mixer, "/no_instruction"); err == nil {
		t.Error("an instruction that does not exist was answered")
	}

	// The PLC is switched off: the twin and its objects go.
	stop()
	w.await("OPCUA_DISCOVERY_URL")
	w.eventually("all objects are deleted", func() string {
		return w.kubectl("get", "edgedevices,deployments,services", "--output=name")
	})
}

// loadTwin loads the stand-in for Shifu's twin, under the name of Shifu's image.
func (w *world) loadTwin() {
	w.t.Helper()
	program := filepath.Join(w.t.TempDir(), "twin")
	command := exec.CommandContext(w.ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, "./examples/shifu/twin")
	command.Dir = install.programs.Root
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		w.t.Fatalf("build the twin: %v: %s", err, output)
	}
	err := image.Write(program+".tar", image.Image{
		Name: "edgehub/deviceshifu-http-opcua:v0.101.0", Files: map[string]string{"/program": program}, Entrypoint: []string{"/program"},
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
