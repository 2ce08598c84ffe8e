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
	t        *testing.T
	programs akri.Programs
	// fired are the alerts that have fired.
	fired map[string]bool
	// seen are the queries of panels that have returned data.
	seen map[panelQuery]bool
}

// neverOnCluster are the alerts that do not fire in TestMonitoring, and why. All alerts fire
// in TestRules, on series of the same metrics.
var neverOnCluster = map[string]string{
	"AkriControllerStuck":            "a worker would have to be busy for five minutes, which are not compressed",
	"AkriReconcilePanics":            "only a bug causes it",
	"AkriAllocationsRefused":         "a refused claim makes the node offer no device, so that refusals do not last",
	"AkriSlotReleasesSlow":           "releases would have to take more than ten seconds, which are not compressed",
	"AkriWebhookSlow":                "reviews would have to take more than five seconds, which are not compressed",
	"AkriWebhookCertificateExpiring": "the webhook renews its certificate long before",
	"AkriRestarting":                 "the kubelet delays restarts, which is not compressed",
}

// configurations are Configurations that do not become ready, except for the first.
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

// user is a Pod that uses a camera. Nothing replaces it, so that its slot is released.
const user = `
apiVersion: v1
kind: Pod
metadata: {name: user}
spec:
  containers:
  - {name: c, image: "akri.local/workload:1", resources: {limits: {akri.sh/cameras: "1"}}}
`

// broken are Configurations that the webhook would reject: a template with an error, one
// whose object exists in every namespace, and one of a kind that Akri may not watch.
const broken = `
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: broken}
spec:
  discoveryHandler: {name: debugEcho, discoveryDetails: "descriptions: [only]"}
  instanceBrokerResources:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ NOTHING_OF_THIS_NAME }}"}}
---
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: conflicting}
spec:
  discoveryHandler: {name: debugEcho, discoveryDetails: "descriptions: [only]"}
  instanceBrokerResources:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: kube-root-ca.crt}}
---
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: forbidden}
spec:
  discoveryHandler: {name: debugEcho, discoveryDetails: "descriptions: [only]"}
  instanceBrokerResources:
  - {apiVersion: v1, kind: ResourceQuota, metadata: {name: "{{ INSTANCE_NAME }}"}}
`

// permission lets Akri manage the kind of the last of the broken Configurations, which
// repairs it.
const permission = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: akri-controller-quotas, labels: {akri.sh/aggregate-to-controller: "true"}}
rules:
- {apiGroups: [""], resources: [resourcequotas], verbs: [get, list, watch, create, patch, delete]}
`

// TestMonitoring runs a Prometheus with the rules, breaks Akri in several ways, and waits
// until the alerts fire, and resolve after the repair.
func TestMonitoring(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	w.kubectl("create", "namespace", "devices")
	w.apply(configurations)
	w.scraped()
	w.kubectl("wait", "--namespace=devices", "--for=condition=Ready", "configuration/cameras", "configuration/exhausted", "--timeout=90s")

	w.apply(user)
	w.fires("AkriSlotsExhausted", "AkriNoDevices", "AkriDiscoveryHandlerAbsent")
	w.breakRecord()
	w.released()
	w.kubectl("label", "namespace", "devices", "akri.sh/admission=skip")
	w.apply(broken)
	w.fires("AkriInstancesFailing", "AkriConfigurationNotAccepted", "AkriConfigurationNotReady", "AkriWatchesFailing")
	w.firesWhile("AkriObjectsFailing", w.editing("conflicting"))
	w.kubectl("delete", "--namespace=devices", "configuration", "exhausted", "unknown", "broken", "conflicting")
	w.apply(permission)
	w.quiet()
	w.kubectl("delete", "--namespace=devices", "configuration", "forbidden")

	w.breakClaims()
	w.breakAgent()
	w.breakDiscovery()
	w.breakDevice()
	w.breakKubelet()
	w.breakWebhook()
	w.breakStatus()
	w.breakUpgrade()
	w.breakController()

	w.checkLibraries()
	w.checkPanels()
	for _, alert := range alerts(t) {
		if _, never := neverOnCluster[alert.Alert]; !never && !w.fired[alert.Alert] {
			t.Errorf("%s has not fired", alert.Alert)
		}
	}
}

// TestNeverOnCluster checks that the exceptions are alerts.
func TestNeverOnCluster(t *testing.T) {
	exist := map[string]bool{}
	for _, alert := range alerts(t) {
		exist[alert.Alert] = true
	}
	for name := range neverOnCluster {
		if !exist[name] {
			t.Errorf("there is no alert %s", name)
		}
	}
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
	return &world{
		Cluster: c, prometheus: startPrometheus(t, c, dir), t: t, programs: programs,
		fired: map[string]bool{}, seen: map[panelQuery]bool{},
	}
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

// released deletes the user of a camera, and waits until Prometheus knows of the release.
func (w *world) released() {
	w.t.Helper()
	w.kubectl("wait", "--namespace=devices", "--for=condition=Ready", "pod/user", "--timeout=90s")
	w.kubectl("delete", "--namespace=devices", "pod/user")
	w.eventually("a release is scraped", func() string {
		if series, err := w.query("rate(akri_agent_releases_total[5m])"); err != nil || series == 0 {
			return fmt.Sprintf("%d series: %v", series, err)
		}
		return ""
	})
}

// fires waits until alerts fire, and records which panels have data meanwhile.
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
		w.fired[alert] = true
	}
	w.look()
}

// firesWhile repeats something until an alert fires.
func (w *world) firesWhile(alert string, something func(attempt int)) {
	w.t.Helper()
	attempt := 0
	w.eventually(alert+" fires", func() string {
		something(attempt)
		attempt++
		firing, err := w.firing(alert)
		if err != nil || len(firing) == 0 {
			return fmt.Sprintf("it does not: %v", err)
		}
		return ""
	})
	w.fired[alert] = true
	w.look()
}

// editing returns a function that edits a Configuration: the controller tries again at
// once, without the back-off of the attempts before.
func (w *world) editing(configuration string) func(attempt int) {
	return func(attempt int) {
		w.kubectl("patch", "--namespace=devices", "configuration/"+configuration, "--type=merge",
			"--patch", fmt.Sprintf(`{"spec": {"brokerProperties": {"ATTEMPT": "%d"}}}`, attempt))
	}
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
	w.look()
}

// look records which panels have data now.
func (w *world) look() {
	w.t.Helper()
	for _, query := range panelQueries(w.t) {
		if w.seen[query] {
			continue
		}
		series, err := w.query(query.expr)
		if err != nil {
			w.t.Errorf("%s: %v", query.place, err)
		}
		w.seen[query] = series > 0
	}
}

// checkPanels checks that each panel had data at some time.
func (w *world) checkPanels() {
	w.t.Helper()
	for _, query := range panelQueries(w.t) {
		if !w.seen[query] {
			w.t.Errorf("%s: has no data: %s", query.place, query.expr)
		}
	}
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
