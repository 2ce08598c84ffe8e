package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/cmd/kubectl-akri/view"
)

// discovering returns the Configuration of a discover that runs, or nil.
func (w *world) discovering() *v0.Configuration {
	w.T.Helper()
	var list v0.ConfigurationList
	if err := w.List(context.Background(), &list, client.InNamespace(w.Namespace), client.HasLabels{v0.LabelDiscoverUntil}); err != nil {
		w.T.Fatal(err)
	}
	if len(list.Items) == 0 {
		return nil
	}
	return &list.Items[0]
}

// whenDiscovering waits for the Configuration of a discover, and calls an agent with it.
func (w *world) whenDiscovering(agent func(*v0.Configuration)) (done chan struct{}) {
	done = make(chan struct{})
	go func() {
		defer close(done)
		var created *v0.Configuration
		w.Eventually("a Configuration to discover with", func() string {
			if created = w.discovering(); created == nil {
				return "there is none"
			}
			return ""
		})
		agent(created)
	}()
	return done
}

func (w *world) noneLeft() {
	w.T.Helper()
	if left := w.discovering(); left != nil {
		w.T.Errorf("Configuration %s is left", left.Name)
	}
}

// device publishes a device as an agent does.
func (w *world) device(of *v0.Configuration, number, node, name string) {
	w.T.Helper()
	instance := w.Instance(of.Name, of.Name+"-"+number, map[string]string{"UDEV_DEVNODE": "/dev/" + number, v0.PropertyDisplayName: name})
	instance.Spec.Nodes = []string{node}
	if err := w.Update(context.Background(), instance); err != nil {
		w.T.Error(err)
	}
}

// failure reports a failure of discovery as an agent does.
func (w *world) failure(of *v0.Configuration, node, message string) {
	w.T.Helper()
	of.Status.DiscoveryFailures = append(of.Status.DiscoveryFailures, v0.DiscoveryFailure{Node: node, Handler: "udev", Message: message})
	if err := w.Status().Update(context.Background(), of); err != nil {
		w.T.Error(err)
	}
}

func TestDiscover(t *testing.T) {
	w := newWorld(t)
	agent := w.whenDiscovering(func(c *v0.Configuration) {
		if c.Spec.DiscoveryHandler.Name != "udev" || c.Spec.DiscoveryHandler.DiscoveryDetails != "udevRules:\n- SUBSYSTEM==\"tty\"\n" ||
			len(c.Spec.InstanceBrokerResources) > 0 {
			t.Errorf("created %+v", c.Spec)
		}
		w.device(c, "1", "node-b", "stick")
		w.device(c, "2", "node-a", "")
		w.failure(c, "node-c", "no udev database")
	})
	saved := filepath.Join(t.TempDir(), "saved.yaml")
	got := w.run("", "discover", "udev", "--set", `udevRules=SUBSYSTEM=="tty"`, "--save", saved)
	<-agent
	got.want(t, 0, "2 devices found\n\nstick  on node-b\n  UDEV_DEVNODE  /dev/1\n\ndiscover-", "  on node-a\n  UDEV_DEVNODE  /dev/2\n",
		"Problems:\n  Discovery fails on node node-c, handler udev: no udev database\n    → kubectl akri nodes node-c shows",
		"Discovering for at most 40s; Configuration "+w.Namespace+"/discover-", "!AKRI_DISPLAY_NAME")
	w.noneLeft()
	text, err := os.ReadFile(saved)
	if err != nil || strings.Contains(string(text), "status") {
		t.Errorf("saved %s, %v", text, err)
	}
	run(t, string(text), "lint", "-f", "-").want(t, 0, "1 Configuration, no errors")

	// What was saved can be tried again; only one node is asked for.
	agent = w.whenDiscovering(func(c *v0.Configuration) {
		w.device(c, "1", "node-b", "stick")
		w.device(c, "2", "node-a", "other")
		w.failure(c, "node-c", "no udev database")
	})
	got = w.run("", "discover", "-f", saved, "--node", "node-b", "-o", "json")
	<-agent
	var found view.Facts
	if err := json.Unmarshal([]byte(got.out), &found); err != nil || len(found.Instances) != 1 ||
		v0.DisplayName(&found.Instances[0]) != "stick" || found.Findings == nil || len(found.Findings) > 0 ||
		len(found.Configuration.Status.DiscoveryFailures) > 0 {
		t.Errorf("%v, got %s", err, got.out)
	}
	w.noneLeft()
}

func TestDiscoverNothing(t *testing.T) {
	w := newWorld(t)
	w.installed()
	w.run("", "discover", "udev", "--timeout", "1s", "--node", "node-z").want(t, 1,
		"0 devices found\n\nProblems:\n  Node node-z does not exist.\n")
	w.run("", "discover", "udev", "--timeout", "1s").want(t, 1, "No device was found, and no agent reports a failure: the handler udev")
	w.noneLeft()
	author := w.as("author", `[{apiGroups: [akri.sh], resources: [configurations, instances], verbs: [get, list, watch, create]}]`)
	author.run("", "discover", "udev", "--timeout", "1s").want(t, 1, "error: remove the temporary Configuration: ",
		"; kubectl delete -n "+w.Namespace+" configurations.akri.sh discover-")
	left := w.discovering()
	if left == nil {
		t.Fatal("the author may not delete, but did")
	}
	if end, err := strconv.ParseInt(left.Labels[v0.LabelDiscoverUntil], 10, 64); err != nil || time.Until(time.Unix(end, 0)) > 2*time.Minute {
		t.Errorf("%v: it may stay until %v", err, time.Unix(end, 0))
	}
	reader := w.as("reader", `[{apiGroups: [akri.sh], resources: [configurations, instances], verbs: [get, list, watch]}]`)
	reader.run("", "discover", "udev").want(t, 1, "error: create a Configuration to discover with in namespace",
		"cannot create resource", "!removes it")
}

// TestDiscoverInterrupted sends signals to the program while it waits for devices.
func TestDiscoverInterrupted(t *testing.T) {
	w := newWorld(t)
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		command := exec.CommandContext(t.Context(), os.Args[0], "discover", "udev", "--timeout", "5m", "--kubeconfig", w.kubeconfig)
		var out bytes.Buffer
		command.Env, command.Stdout, command.Stderr = append(os.Environ(), runMain+"=1"), &out, &out
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		<-w.whenDiscovering(func(*v0.Configuration) {})
		begin := time.Now()
		if err := command.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if err := command.Wait(); err == nil || command.ProcessState.ExitCode() != 1 || time.Since(begin) > time.Minute {
			t.Errorf("%v: %v after %v\n%s", signal, err, time.Since(begin), &out)
		}
		if !strings.Contains(out.String(), "0 devices found") {
			t.Errorf("%v: %s", signal, &out)
		}
		w.noneLeft()
	}
}

func TestDiscoverDetails(t *testing.T) {
	for name, tc := range map[string]struct {
		handler, before string
		set             []string
		want            string
	}{
		"a rule": {"udev", "", []string{`udevRules=SUBSYSTEM=="tty", SUBSYSTEMS=="usb"`},
			"udevRules:\n- SUBSYSTEM==\"tty\", SUBSYSTEMS==\"usb\"\n"},
		"rules": {"udev", "", []string{`udevRules=KERNEL=="a"`, `udevRules=KERNEL=="b"`},
			"udevRules:\n- KERNEL==\"a\"\n- KERNEL==\"b\"\n"},
		"another key stays": {"udev", "symlinks: true", []string{`udevRules=["KERNEL==\"a\""]`}, "symlinks: true\nudevRules:\n- KERNEL==\"a\"\n"},
		"a key in a map":    {"mqtt", "", []string{"broker.url=tcp://a", "convention=homie"}, "broker:\n  url: tcp://a\nconvention: homie\n"},
		"a list in a map": {"opcua", "", []string{"opcuaDiscoveryMethod.standard.discoveryUrls=opc.tcp://a/"},
			"opcuaDiscoveryMethod:\n  standard:\n    discoveryUrls:\n    - opc.tcp://a/\n"},
		"numbers and truth":  {"udev", "", []string{"groupRecursive=true", `id="7"`}, "groupRecursive: true\nid: \"7\"\n"},
		"an unknown handler": {"mine", "a: 1", []string{"b=2", "c=x"}, "a: 1\nb: 2\nc: x\n"},
		"nothing is set":     {"mine", "# as it is\na:   1", nil, "# as it is\na:   1"},
	} {
		handler := v0.DiscoveryHandler{Name: tc.handler, DiscoveryDetails: tc.before}
		if err := setDetails(&handler, tc.set); err != nil || handler.DiscoveryDetails != tc.want {
			t.Errorf("%s: %v, got %q", name, err, handler.DiscoveryDetails)
		}
	}
	const two = "kind: Configuration\nspec: {discoveryHandler: {name: udev}}\n"
	for name, tc := range map[string]struct {
		stdin string
		args  []string
		want  string
	}{
		"no handler":         {"", nil, "name a discovery handler, such as debugEcho, http, "},
		"details only":       {"a: 1", []string{"-f", "-"}, "name a discovery handler"},
		"two Configurations": {two + "---\n" + two, []string{"-f", "-"}, "give one Configuration with -f"},
		"no value":           {"", []string{"udev", "--set", "a"}, "use KEY=VALUE"},
		"a key of a text":    {"a: b", []string{"udev", "-f", "-", "--set", "a.b=c"}, "--set a.b: "},
		"no map":             {"- a", []string{"udev", "-f", "-", "--set", "a=c"}, "--set needs discoveryDetails in YAML"},
		"no directory":       {"", []string{"udev", "--save", "/nowhere/a"}, "open /nowhere/a"},
		"an existing file":   {"", []string{"udev", "--save", "discover_test.go"}, "open discover_test.go: file exists"},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, tc.stdin, append([]string{"discover"}, tc.args...)...).want(t, 2, "error: ", tc.want)
		})
	}
}
