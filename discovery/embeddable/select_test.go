package embeddable_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/builtin"
	"akri.sh/akri/discovery/embeddable"
	"akri.sh/akri/discovery/monitor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSelect(t *testing.T) {
	echo := map[string]string{"DEBUG_ECHO_INSTANCES_SHARED": "true"}
	for name, tc := range map[string]struct {
		names       []string
		environment map[string]string
		want        string // the names of shared handlers have a plus sign
		err         string
	}{
		"none":                    {nil, nil, "", ""},
		"all":                     {[]string{"udev", "onvif", "opcua", "debugEcho"}, echo, "udev onvif+ opcua+ debugEcho+", ""},
		"debugEcho, not shared":   {[]string{"debugEcho"}, map[string]string{"DEBUG_ECHO_INSTANCES_SHARED": "false"}, "debugEcho", ""},
		"debugEcho needs to know": {[]string{"udev", "debugEcho"}, nil, "", "DEBUG_ECHO_INSTANCES_SHARED"},
		"not a Boolean": {[]string{"debugEcho"}, map[string]string{"DEBUG_ECHO_INSTANCES_SHARED": "maybe"}, "",
			`DEBUG_ECHO_INSTANCES_SHARED is "maybe": set it to true`},
		"unknown": {[]string{"udev", "doors"}, nil, "",
			`"doors": not a handler that agents can run: use debugEcho, onvif, opcua, udev, and`},
		"not in the agent":          {[]string{"mqtt"}, nil, "", "a DaemonSet for others"},
		"the name of the command":   {[]string{"debug-echo"}, echo, "", `"debug-echo": not`},
		"an empty name":             {[]string{"udev", ""}, nil, "", `"": not`},
		"twice":                     {[]string{"udev", "onvif", "udev"}, nil, "", `"udev": listed twice`},
		"upper and lower case":      {[]string{"UDEV"}, nil, "", `"UDEV": not`},
		"a space belongs to a name": {[]string{" udev"}, nil, "", `" udev": not`},
	} {
		t.Run(name, func(t *testing.T) {
			handlers, err := embeddable.Select(tc.names, func(variable string) string { return tc.environment[variable] })
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) || handlers != nil {
					t.Errorf("got %v, %v, want an error that contains %q", handlers, err, tc.err)
				}
				return
			}
			var got []string
			for _, each := range handlers {
				if each.Shared {
					each.Name += "+"
				}
				got = append(got, each.Name)
			}
			if err != nil || strings.Join(got, " ") != tc.want {
				t.Errorf("got %v, %v, want %s", got, err, tc.want)
			}
		})
	}
}

// TestNew checks that each handler can be created, under a name whose details the
// webhook checks, and refuses wrong details.
func TestNew(t *testing.T) {
	handlers, err := embeddable.Select(embeddable.Names(), func(string) string { return "true" })
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range handlers {
		if builtin.Validators[each.Name] == nil {
			t.Errorf("%s is not a built-in handler", each.Name)
		}
		handler := each.New(monitor.New(prometheus.NewRegistry()), slog.New(slog.DiscardHandler))
		err := handler.Discover(t.Context(), discovery.Request{Details: "noSuchKey: 1"}, func([]discovery.Device) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "noSuchKey") {
			t.Errorf("%s: wrong details: %v", each.Name, err)
		}
	}
}
