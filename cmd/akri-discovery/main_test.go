package main

import (
	"bytes"
	"strings"
	"testing"

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

func TestHelp(t *testing.T) {
	root := newRoot(func(string) string { return "" })
	var out bytes.Buffer
	root.SetArgs([]string{"debug-echo", "--help"})
	root.SetOut(&out)
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"--shared", "DEBUG_ECHO_INSTANCES_SHARED", "--availability-file", "--discovery-handlers-dir", "POD_IP", "descriptions:",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("--help does not mention %s:\n%s", want, out.String())
		}
	}
}

// TestUsage has all parts that a usage can have.
func TestUsage(t *testing.T) {
	for _, tc := range []struct{ arguments, want []string }{
		{nil, []string{
			"Usage:\n  akri-discovery [command]\n\nAvailable Commands:\n  check       Check any", "\n  help  ", "\n\nFlags:\n  -h, --help",
			"\n\nUse \"akri-discovery [command] --help\" for more information about a command.\n",
		}},
		{[]string{"check"}, []string{
			"Usage:\n  akri-discovery check [flags]\n\nExamples:\n  akri-discovery check --endpoint", "\n\nFlags:\n",
			"handler must\n                                           refuse; may be repeated\n",
		}},
	} {
		root := newRoot(func(string) string { return "" })
		var out bytes.Buffer
		root.SetArgs(append(tc.arguments, "--help"))
		root.SetOut(&out)
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, want := range tc.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q: no %q in\n%s", tc.arguments, want, out.String())
			}
		}
		if strings.Contains(out.String(), "\n  man ") {
			t.Error("a hidden command is shown")
		}
	}
}

// Every handler whose discoveryDetails are checked has a command with a manual, and there are
// no others.
func TestEveryHandlerHasACommand(t *testing.T) {
	if len(commands) != len(builtin.Validators) {
		t.Errorf("%d commands for the %d handlers of discovery/builtin", len(commands), len(builtin.Validators))
	}
	root := newRoot(func(string) string { return "" })
	for name := range builtin.Validators {
		use := strings.ToLower(name)
		if name == "debugEcho" {
			use = "debug-echo"
		}
		command, _, err := root.Find([]string{use})
		if err != nil || command == root {
			t.Errorf("%s: no command %s: %v", name, use, err)
			continue
		}
		if !strings.Contains(command.Long, "name: "+name) {
			t.Errorf("the manual of %s has no example of a Configuration", use)
		}
	}
}

func TestVersion(t *testing.T) {
	root := newRoot(func(string) string { return "" })
	var out bytes.Buffer
	root.SetArgs([]string{"--version"})
	root.SetOut(&out)
	if err := root.ExecuteContext(t.Context()); err != nil || !strings.HasPrefix(out.String(), "akri-discovery v") {
		t.Errorf("got %v, %q", err, out.String())
	}
}
