package monitoring

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/e2e/akri"
	"akri.sh/akri/kubebox/cluster"
	"akri.sh/akri/kubebox/clustertest"
)

func TestMain(m *testing.M) { clustertest.Main(m) }

// timeout bounds how long the test waits for a condition.
const timeout = 90 * time.Second

// world is a cluster with Akri and a Prometheus.
type world struct {
	*cluster.Cluster
	*prometheus
	t *testing.T
}

// configurations are Configurations. The last one does not become ready.
const configurations = `
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: cameras}
spec:
  discoveryHandler: {name: debugEcho, discoveryDetails: "descriptions: [front, back]"}
---
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: exhausted}
spec:
  discoveryHandler: {name: debugEcho, discoveryDetails: "descriptions: [only]"}
  capacity: 2
  instanceBrokerResources:
  - apiVersion: apps/v1
    kind: Deployment
    metadata: {name: "{{ INSTANCE_NAME }}"}
    spec:
      replicas: 2
      selector: {matchLabels: "{{ LABEL_SELECTOR }}"}
      template:
        spec:
          containers:
          - {name: c, image: "akri.local/workload:1", resources: {limits: {"{{ RESOURCE_NAME }}": "1"}}}
---
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: unknown}
spec:
  discoveryHandler: {name: nobody-has-it, discoveryDetails: ""}
`

// user is a Pod that uses a camera.
const user = `
apiVersion: v1
kind: Pod
metadata: {name: user}
spec:
  containers:
  - {name: c, image: "akri.local/workload:1", resources: {limits: {akri.sh/cameras: "1"}}}
`

// TestMonitoring runs a Prometheus with the rules, takes one part of Akri after the other
// away, and waits until the alerts fire, and resolve after the repair. TestRules has a case
// for each alert; only a cluster shows that the series come, and end with a process.
func TestMonitoring(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	w.kubectl("create", "namespace", "devices")
	w.apply(configurations)
	w.scraped()
	w.kubectl("wait", "--namespace=devices", "--for=condition=Ready", "configuration/cameras", "configuration/exhausted", "--timeout=90s")

	w.apply(user)
	w.kubectl("wait", "--namespace=devices", "--for=condition=Ready", "pod/user", "--timeout=90s")
	w.fires("AkriSlotsExhausted", "AkriNoDevices", "AkriDiscoveryHandlerAbsent")
	w.kubectl("delete", "--namespace=devices", "pod/user", "configuration/exhausted", "configuration/unknown")
	w.quiet()

	w.breakAgent()
	w.breakDiscovery()
	w.breakKubelet()
	w.breakWebhook()
	w.breakController()
	w.checkLibraries()
}

// newWorld starts a cluster with Akri and a Prometheus.
func newWorld(t *testing.T) *world {
	t.Helper()
	program(t, "prometheus") // fetch it, or skip the test, before the cluster starts
	c := clustertest.Start(t, cluster.Config{Nodes: 1})
	programs, err := akri.Build(t.Context(), os.Stderr)
	if err == nil {
		err = akri.Install(t.Context(), c, programs, "open-metrics")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			ctx, cancel := context.WithTimeout(context.Background(), timeout) // the test's own context has ended
			defer cancel()
			t.Log(akri.Evidence(ctx, c, "devices"))
		}
	})
	dir := t.TempDir()
	writeConfiguration(t, c, dir)
	discoverPods(t, c, dir, akri.Namespace)
	promtool(t, dir, "check", "config", "prometheus.yaml")
	return &world{Cluster: c, prometheus: startPrometheus(t, c, dir), t: t}
}

func (w *world) kubectl(arguments ...string) string {
	w.t.Helper()
	out, err := w.Kubectl(w.t.Context(), arguments...)
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func (w *world) apply(manifest string) {
	w.t.Helper()
	if _, err := w.KubectlInput(w.t.Context(), []byte(manifest), "apply", "--namespace=devices", "--server-side", "-f", "-"); err != nil {
		w.t.Fatal(err)
	}
}

// eventually waits until check returns "".
func (w *world) eventually(what string, check func() string) {
	w.t.Helper()
	took := clustertest.Eventually(w.t, timeout, what, check)
	w.t.Logf("%s: after %.1fs", what, took.Seconds())
}

// scraped waits until Prometheus scrapes all Pods, and evaluates all rules.
func (w *world) scraped() {
	w.t.Helper()
	want := []string{"akri-agent", "akri-controller", "akri-debug-echo-discovery", "akri-webhook", "apiserver"}
	w.eventually("all targets are up", func() string {
		targets, err := w.targets()
		if err != nil {
			return err.Error()
		}
		var up []string
		for _, target := range targets {
			if target.Health != "up" {
				return fmt.Sprintf("%v is %s: %s", target.Labels, target.Health, target.LastError)
			}
			up = append(up, target.Labels["job"])
		}
		if slices.Sort(up); !slices.Equal(up, want) {
			return fmt.Sprintf("%v are up, want %v", up, want)
		}
		return ""
	})
	w.eventually("all rules are evaluated", func() string {
		rules, err := w.rules()
		if err != nil || len(rules) == 0 {
			return fmt.Sprintf("%d rules: %v", len(rules), err)
		}
		for _, rule := range rules {
			if rule.Health != "ok" {
				return fmt.Sprintf("%s is %s: %s", rule.Name, rule.Health, rule.LastError)
			}
		}
		return ""
	})
}

// fires waits until alerts fire.
func (w *world) fires(alerts ...string) {
	w.t.Helper()
	for _, alert := range alerts {
		w.eventually(alert+" fires", func() string {
			firing, err := w.firing(alert)
			if err != nil || len(firing) == 0 {
				return fmt.Sprintf("it does not: %v", err)
			}
			w.t.Log(firing[0])
			return ""
		})
	}
}

// firesWhile repeats something until an alert fires.
func (w *world) firesWhile(alert string, something func()) {
	w.t.Helper()
	w.eventually(alert+" fires", func() string {
		something()
		firing, err := w.firing(alert)
		if err != nil || len(firing) == 0 {
			return fmt.Sprintf("it does not: %v", err)
		}
		return ""
	})
}

// quiet waits until no alert fires.
func (w *world) quiet() {
	w.t.Helper()
	w.eventually("no alert fires", func() string {
		firing, err := w.firing("")
		if err != nil {
			return err.Error()
		}
		return strings.Join(firing, "\n")
	})
}

// checkLibraries checks that the metrics in testdata/libraries.txt exist, with their labels.
func (w *world) checkLibraries() {
	w.t.Helper()
	for _, metric := range libraryMetrics(w.t) {
		selector := ""
		for _, label := range metric.labels {
			selector += label + `!="",`
		}
		expr := fmt.Sprintf("max_over_time(%[1]s{%[2]s}[1h]) or max_over_time(%[1]s_count{%[2]s}[1h])", metric.name, selector)
		if series, err := w.query(expr); err != nil || series == 0 {
			w.t.Errorf("testdata/libraries.txt: no %s with the labels %v was scraped: %v", metric.name, metric.labels, err)
		}
	}
}
