package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:6443"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {token: t}}]
current-context: c
`

func TestFlagsAndVariables(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	environment := map[string]string{
		"KUBECONFIG": file, "AGENT_NODE_NAME": "from-akri", "NODE_NAME": "from-us",
		"DISCOVERY_HANDLERS_DIRECTORY": "/handlers", "METRICS_PORT": "9000",
	}
	var out bytes.Buffer
	options, err := parse(nil, func(name string) string { return environment[name] }, &out, &out)
	if err != nil {
		t.Fatal(err)
	}
	if options.NodeName != "from-us" || options.HandlersDir != "/handlers" || options.KubeletDir != "/var/lib/kubelet" ||
		options.Config.Host != "https://127.0.0.1:6443" || options.Config.QPS != -1 {
		t.Errorf("from variables: %+v", options)
	}
	// Only a port-forward, or what an operator permits, reaches the metrics. Kubelets reach the probes.
	if options.MetricsAddress != "127.0.0.1:9000" || options.ProbeAddress != ":8081" {
		t.Errorf("metrics are served at %s, probes at %s", options.MetricsAddress, options.ProbeAddress)
	}
	options, err = parse(
		[]string{
			"--node-name",
			"n",
			"--discovery-handlers-dir=/d",
			"--kubelet-dir=/k",
			"--metrics-bind-address=0",
			"--allow-cross-namespace-properties",
			"--kubeconfig",
			file,
		},
		func(string) string { return "" },
		&out,
		&out,
	)
	if err != nil {
		t.Fatal(err)
	}
	if options.NodeName != "n" || options.HandlersDir != "/d" || options.KubeletDir != "/k" || options.MetricsAddress != "0" ||
		!options.AllowCrossNamespaceProperties {
		t.Errorf("from flags: %+v", options)
	}
}

func TestErrorsNameTheRemedy(t *testing.T) {
	for name, tc := range map[string]struct {
		arguments []string
		want      string
	}{
		"no kubeconfig":         {nil, "--kubeconfig"},
		"a missing kubeconfig":  {[]string{"--kubeconfig=/nowhere"}, "/nowhere"},
		"an unknown level":      {[]string{"--log-level=loud"}, "debug, info, warn or error"},
		"an unknown format":     {[]string{"--log-format=xml"}, "text or json"},
		"a positional argument": {[]string{"start"}, `unexpected argument "start"`},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			_, err := parse(tc.arguments, func(string) string { return "" }, &out, &out)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error that contains %q", err, tc.want)
			}
		})
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for name, tc := range map[string]struct {
		arguments []string
		want      string
	}{
		"no node":      {[]string{"--kubeconfig", file}, "--node-name"},
		"no directory": {[]string{"--kubeconfig", file, "--node-name=n", "--discovery-handlers-dir=/nowhere"}, "--discovery-handlers-dir"},
	} {
		t.Run(name, func(t *testing.T) {
			err := run(t.Context(), tc.arguments, func(string) string { return "" }, &out, &out)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error that contains %q", err, tc.want)
			}
		})
	}
}

// Handlers and Configurations choose the values that are logged. They cannot write a
// line of their own, or reach the terminal.
func TestLogsAreOneLineEach(t *testing.T) {
	const hostile = "cam\nlevel=INFO msg=forged \x1b[2J"
	for _, format := range []string{"text", "json"} {
		var out bytes.Buffer
		log, err := newLogger(&out, "info", format)
		if err != nil {
			t.Fatal(err)
		}
		log.Warn("Discovery failed", "device", hostile, "err", errors.New(hostile))
		if line := strings.TrimSuffix(out.String(), "\n"); strings.ContainsAny(line, "\n\x1b") || !strings.Contains(line, "forged") {
			t.Errorf("%s: %q", format, out.String())
		}
	}
}

func TestVersion(t *testing.T) {
	var out bytes.Buffer
	_, err := parse([]string{"--version"}, func(string) string { return "" }, &out, &out)
	if !errors.Is(err, errVersion) || !strings.HasPrefix(out.String(), "akri-agent v") {
		t.Errorf("got %v, %q", err, out.String())
	}
}
