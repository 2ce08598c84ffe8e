package helm_test

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestMetricsAreClosed checks where each program serves metrics: inside its Pod, unless an
// operator opens them, which one value or one component does for all. Probes work in any
// case, at a port of their own.
func TestMetricsAreClosed(t *testing.T) {
	own := "resources: [../../config/" + strings.Join(append(slices.Clone(everyDir), "site"), ", ../../config/") + "]\n"
	const onHost = "agent: {embeddedHandlers: [onvif]}\n"
	for name, test := range map[string]struct {
		build func(*testing.T, string) map[string]object
		text  string
		open  bool
		pods  int
	}{
		"the chart":                 {render, everyHandler, false, 10},
		"agents on the host":        {render, onHost, false, 3},
		"the chart, open":           {render, everyHandler + "metrics: {enabled: true}", true, 10},
		"agents on the host, open":  {render, onHost + "metrics: {enabled: true}", true, 3},
		"a PodMonitor":              {render, everyHandler + "metrics: {podMonitor: {enabled: true}}", true, 10},
		"a ServiceMonitor":          {render, everyHandler + "metrics: {serviceMonitor: {enabled: true}}", true, 10},
		"Prometheus of Akri's keys": {render, "prometheus: {enabled: true}", true, 3},
		"kustomize":                 {kustomizeOwn, own, false, 11},
		"kustomize, open":           {kustomizeOwn, own + "components: [../../config/open-metrics]", true, 11},
		"kustomize, no handler": {
			kustomizeOwn, "{resources: [../../config/default], components: [../../config/open-metrics]}", true, 3,
		},
	} {
		t.Run(name, func(t *testing.T) {
			pods := 0
			for id, o := range test.build(t, test.text) {
				containers, _, _ := unstructured.NestedSlice(o, "spec", "template", "spec", "containers")
				for _, c := range containers {
					if problem := endpoints(c.(object), test.open); problem != "" {
						t.Errorf("%s: %s", id, problem)
					}
					pods++
				}
			}
			if pods != test.pods {
				t.Errorf("%d programs, want %d", pods, test.pods)
			}
		})
	}
}

// endpoints returns what is wrong with where a container serves metrics and probes, or "".
func endpoints(container object, open bool) string {
	ports := map[string]string{}
	listed, _, _ := unstructured.NestedSlice(container, "ports")
	for _, port := range listed {
		ports[port.(object)["name"].(string)] = fmt.Sprint(port.(object)["containerPort"])
	}
	metrics, probes := "", ":8081"
	args, _, _ := unstructured.NestedStringSlice(container, "args")
	for _, arg := range args {
		switch name, value, _ := strings.Cut(arg, "="); name {
		case "--metrics-bind-address":
			metrics = value
		case "--health-probe-bind-address":
			probes = value
		}
	}
	host, port, err := net.SplitHostPort(metrics)
	switch {
	case err != nil || port != ports["metrics"]:
		return fmt.Sprintf("metrics are served at %q, and the Pod's port of metrics is %q", metrics, ports["metrics"])
	case open && host != "":
		return fmt.Sprintf("the metrics are not open: they are served at %s", metrics)
	case !open && !net.ParseIP(host).IsLoopback():
		return fmt.Sprintf("the metrics are open: they are served at %s", metrics)
	case probes != ":"+ports["probes"]:
		return fmt.Sprintf("probes are served at %s, and the Pod's port of probes is %q", probes, ports["probes"])
	}
	for _, probe := range []string{"livenessProbe", "readinessProbe"} {
		if port, _, _ := unstructured.NestedString(container, probe, "httpGet", "port"); port != "probes" {
			return fmt.Sprintf("the %s uses the port %q", probe, port)
		}
	}
	return ""
}

// TestOneSwitch checks that one value lets Prometheus read the metrics: where they are served, what
// the network admits, and how Prometheus finds the Pods.
func TestOneSwitch(t *testing.T) {
	const annotation = "prometheus.io/scrape: \"true\""
	for name, test := range map[string]struct {
		values, policy      string // what the agents' NetworkPolicy has
		annotated           bool
		monitor, of, served string // objects, and what the monitor selects
	}{
		"closed": {values: "", policy: "ingress: []"},
		"open":   {values: "metrics: {enabled: true}", policy: "ingress:\n  - ports:\n    - port: metrics", annotated: true},
		"for some": {
			values: "{metrics: {enabled: true}, networkPolicy: {metricsFrom: [{podSelector: {}}]}}",
			policy: "- podSelector: {}", annotated: true,
		},
		"Pods": {
			values: "metrics: {podMonitor: {enabled: true, interval: 9s}}", policy: "port: metrics",
			monitor: "PodMonitor akri-system/akri", of: "interval: 9s",
		},
		"with more": {
			values: "metrics: {podMonitor: {enabled: true, endpointAdditionalProperties: {relabelings: [{action: drop}]}}}",
			policy: "port: metrics", monitor: "PodMonitor akri-system/akri", of: "targetLabel: node\n    - action: drop",
		},
		"elsewhere": {
			values: "metrics: {podMonitor: {enabled: true, namespace: top}}", policy: "port: metrics",
			monitor: "PodMonitor top/akri", of: "matchNames:\n    - akri-system",
		},
		"a Service": {
			values: "metrics: {serviceMonitor: {enabled: true, scrapeTimeout: 4s}}", policy: "port: metrics",
			monitor: "ServiceMonitor akri-system/akri", of: "scrapeTimeout: 4s", served: "Service akri-system/akri-metrics",
		},
		"its targets": {
			values: "metrics: {serviceMonitor: {enabled: true}}", policy: "port: metrics",
			monitor: "ServiceMonitor akri-system/akri", of: "app_kubernetes_io_name\n      targetLabel: job",
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := render(t, test.values)
			if policy := text(t, all["NetworkPolicy akri-system/akri-agent"]); !strings.Contains(policy, test.policy) {
				t.Errorf("want %q in\n%s", test.policy, policy)
			}
			agent := text(t, all["DaemonSet akri-system/akri-agent"])
			if strings.Contains(agent, annotation) != test.annotated || strings.Contains(agent, "127.0.0.1:8080") != (test.values == "") {
				t.Errorf("want the annotation %q: %t, and an address:\n%s", annotation, test.annotated, agent)
			}
			if test.monitor != "" && !strings.Contains(text(t, all[test.monitor]), test.of) {
				t.Errorf("want %q in %s:\n%s", test.of, test.monitor, text(t, all[test.monitor]))
			}
			if test.served != "" && all[test.served] == nil {
				t.Errorf("no %s", test.served)
			}
		})
	}
}
