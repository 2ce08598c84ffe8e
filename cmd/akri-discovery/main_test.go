package main

import (
	"bytes"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/discovery/builtin"
)

func TestDebugEchoNamesMissingFlags(t *testing.T) {
	for name, tc := range map[string]struct {
		arguments   []string
		environment map[string]string
		want        string
	}{
		"shared is not set": {[]string{"debug-echo"}, nil, "DEBUG_ECHO_INSTANCES_SHARED"},
		"not a Boolean": {[]string{"debug-echo"}, map[string]string{"DEBUG_ECHO_INSTANCES_SHARED": "maybe"},
			`--shared, or the environment variable DEBUG_ECHO_INSTANCES_SHARED is "maybe": set it to true`},
		"no directory": {[]string{"debug-echo", "--shared=true", "--discovery-handlers-dir=/nowhere"}, nil,
			"DISCOVERY_HANDLERS_DIRECTORY"},
		"an unknown level":   {[]string{"debug-echo", "--shared=true", "--log-level=loud"}, nil, "debug, info, warn or error"},
		"an unknown handler": {[]string{"debug-ecko"}, nil, "unknown command"},
	} {
		t.Run(name, func(t *testing.T) {
			root := newRoot(func(variable string) string { return tc.environment[variable] })
			var out bytes.Buffer
			root.SetArgs(tc.arguments)
			root.SetOut(&out)
			root.SetErr(&out)
			if err := root.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error that contains %q", err, tc.want)
			}
		})
	}
}

// Every handler whose discoveryDetails are checked has a command with a manual, whose example it
// accepts, and there are no others.
func TestEveryHandlerHasACommand(t *testing.T) {
	if len(commands) != len(builtin.Validators) {
		t.Errorf("%d commands for the %d handlers of discovery/builtin", len(commands), len(builtin.Validators))
	}
	root := newRoot(func(string) string { return "" })
	for name, validate := range builtin.Validators {
		use := strings.ToLower(name)
		if name == "debugEcho" {
			use = "debug-echo"
		}
		command, _, err := root.Find([]string{use})
		if err != nil || command == root {
			t.Errorf("%s: no command %s: %v", name, use, err)
			continue
		}
		_, rest, _ := strings.Cut(command.Long, "    discoveryHandler:\n")
		example, _, _ := strings.Cut(rest, "\n\n")
		var shown v0.DiscoveryHandler
		if err := yaml.Unmarshal([]byte(example), &shown); err != nil || shown.Name != name {
			t.Errorf("the manual of %s has no example of a Configuration: %v", use, err)
		} else if err := validate(shown.DiscoveryDetails); err != nil {
			t.Errorf("the example in the manual of %s: %v", use, err)
		}
	}
}
