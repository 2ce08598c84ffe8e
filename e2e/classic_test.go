package e2e_test

import (
	"fmt"
	"strings"
	"testing"
)

// A Configuration in the format of the original Akri creates a Pod per device and node,
// which is pinned to the node and holds a slot, a Service per device, and a Service for
// all devices.
func TestClassicPodsAndServices(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(`
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: classic}
spec:
  discoveryHandler: {name: debugEcho, discoveryDetails: "descriptions: [foo0, foo1]"}
  capacity: 2
  brokerSpec:
    brokerPodSpec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: broker
        image: akri.local/workload:1
        resources: {requests: {"{{PLACEHOLDER}}": "1"}, limits: {"{{PLACEHOLDER}}": "1"}}
  instanceServiceSpec: {type: ClusterIP, ports: [{name: http, port: 80, targetPort: 6052}]}
  configurationServiceSpec: {type: ClusterIP, ports: [{name: http, port: 80, targetPort: 6052}]}
`)
	w.awaitReady("classic", 2)
	pods := w.list("pods")
	if len(pods) != 2 {
		t.Fatalf("%d Pods, want one for each of two devices on one node", len(pods))
	}
	for _, pod := range pods {
		if !strings.HasPrefix(pod.Metadata.Name, "node1-classic-") || pod.Metadata.Labels["akri.sh/target-node"] != "node1" {
			t.Errorf("Pod %s with labels %v does not follow Akri's naming and labels", pod.Metadata.Name, pod.Metadata.Labels)
		}
		if environment := w.kubectl("logs", pod.Metadata.Name); !strings.Contains(environment, "DEBUG_ECHO_DESCRIPTION=foo") {
			t.Errorf("environment of %s lacks the device's property:\n%s", pod.Metadata.Name, environment)
		}
	}
	for _, instance := range w.list("instances") {
		if used(instance) != 1 {
			t.Errorf("deviceUsage of %s: %v, want one slot held", instance.Metadata.Name, instance.Spec.DeviceUsage)
		}
	}
	checkServices(t, "classic", w.list("services"), pods)
	w.kubectl("delete", "configuration", "classic")
	for _, kind := range []string{"instances", "pods", "services"} {
		w.eventually("deletion of "+kind, func() string { return w.names(kind) })
	}
}

// A Job per device runs once, even if it is deleted after it has completed. An edited Job
// runs again.
func TestClassicJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	write := func(more string) {
		w.apply(`
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: jobs}
spec:
  discoveryHandler: {name: debugEcho, discoveryDetails: "descriptions: [foo0]"}
  brokerSpec:
    brokerJobSpec:
      backoffLimit: 1
      template:
        spec:
          restartPolicy: Never` + more + `
          containers:
          - name: broker
            image: akri.local/workload:1
            args: [end]
            resources: {requests: {"{{PLACEHOLDER}}": "1"}, limits: {"{{PLACEHOLDER}}": "1"}}
`)
	}
	done := func(previous string) string {
		t.Helper()
		var name string
		w.eventually("a completed Job", func() string {
			name = w.names("jobs")
			if name == "" || strings.Contains(name, " ") || name == previous {
				return fmt.Sprintf("Jobs: %q", name)
			}
			if succeeded := w.kubectl("get", "job", name, "--output=jsonpath={.status.succeeded}"); succeeded != "1" {
				return fmt.Sprintf("%s has %q succeeded Pods", name, succeeded)
			}
			return ""
		})
		return name
	}
	write("")
	w.awaitReady("jobs", 1)
	first := done("")
	if environment := w.kubectl("logs", "job/"+first); !strings.Contains(environment, "DEBUG_ECHO_DESCRIPTION=foo0") {
		t.Errorf("environment of the Job:\n%s", environment)
	}
	w.eventually("a free slot", func() string {
		if instance := w.list("instances")[0]; used(instance) > 0 {
			return fmt.Sprint(instance.Spec.DeviceUsage)
		}
		return ""
	})

	// A Job that is deleted, as its TTL would do, does not run again. The edit below is
	// made later: once its Job has completed, a second run of the first would be visible.
	w.kubectl("delete", "job", first)
	w.kubectl("annotate", "configuration", "jobs", "seen=now")
	w.wait("Ready", "jobs")
	write("\n          terminationGracePeriodSeconds: 1")
	second := done(first)
	if jobs := w.names("jobs"); jobs != second {
		t.Errorf("Jobs %q, want only %q", jobs, second)
	}
}
