package controller_test

import (
	"testing"

	"akri.sh/akri/controller"
	"akri.sh/akri/internal/metricsdoc"
)

// The documented metrics exist and count actions, failures and objects, also of a kind that
// is used in two versions.
func TestMetrics(t *testing.T) {
	recorder := metricsdoc.NewRecorder()
	c := newClusterWith(t, controller.Options{Workers: 4, Metrics: recorder})
	metricsdoc.Check(t, "../docs/metrics.md", "akri-controller", recorder)
	c.Apply(configWith("cfg", `
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: "{{INSTANCE_NAME}}"}
  - apiVersion: autoscaling/v1
    kind: HorizontalPodAutoscaler
    metadata: {name: "{{INSTANCE_NAME}}-v1"}
    spec: {maxReplicas: 2, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: none}}
  - apiVersion: autoscaling/v2
    kind: HorizontalPodAutoscaler
    metadata: {name: "{{INSTANCE_NAME}}-v2"}
    spec: {maxReplicas: 2, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: none}}`))
	c.Instance("cfg", "cfg-1", nil)
	c.Instance("cfg", "cfg-2", nil)
	c.ready(configuration("cfg"))
	for _, want := range []struct {
		name   string
		labels map[string]string
		value  float64
	}{
		{"akri_controller_actions_total", map[string]string{"action": "create"}, 6},
		{"akri_controller_instances", map[string]string{"namespace": c.Namespace, "configuration": "cfg", "state": "ready"}, 2},
		{"akri_controller_conditions", map[string]string{
			"namespace": c.Namespace, "configuration": "cfg", "condition": "Ready", "reason": "Ready",
		}, 1},
		{"akri_controller_configurations", map[string]string{"discovery_handler_name": "debugEcho"}, 1},
		{"akri_controller_slots", map[string]string{"namespace": c.Namespace, "configuration": "cfg", "state": "free"}, 2},
		{"akri_controller_watched_objects", map[string]string{"group": "", "version": "v1", "resource": "configmaps"}, 2},
		{"akri_controller_watched_objects", map[string]string{
			"group": "autoscaling", "version": "v1", "resource": "horizontalpodautoscalers",
		}, 2},
		{"akri_controller_watched_objects", map[string]string{
			"group": "autoscaling", "version": "v2", "resource": "horizontalpodautoscalers",
		}, 2},
		{"akri_controller_watches", map[string]string{"state": "synced"}, 2},
	} {
		c.Eventually(want.name, func() string {
			families, err := recorder.Gather()
			if err != nil {
				t.Fatal(err)
			}
			for _, family := range families {
				if family.GetName() != want.name {
					continue
				}
				for _, metric := range family.Metric {
					matches := true
					for _, label := range metric.Label {
						matches = matches && want.labels[label.GetName()] == label.GetValue()
					}
					if matches && metric.GetCounter().GetValue()+metric.GetGauge().GetValue() >= want.value { // other tests' objects are counted too
						return ""
					}
				}
			}
			return "it is missing or too low"
		})
	}
}
