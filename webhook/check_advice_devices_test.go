package webhook

import (
	"fmt"
	"strings"
	"testing"
)

// Authors are warned of workloads that use no device, and told which lines are missing.
func TestDevices(t *testing.T) {
	w := newWorld(t)
	w.guard()
	admin := w.as("")
	kinds := map[string]string{ // the Pod's spec is %s
		"Pod": `{apiVersion: v1, kind: Pod, metadata: {name: %[1]s}, spec: %[2]s}`,
		"Job": `{apiVersion: batch/v1, kind: Job, metadata: {name: %[1]s}, spec: {template: {spec: %[2]s}}}`,
		"CronJob": `{apiVersion: batch/v1, kind: CronJob, metadata: {name: %[1]s}, ` +
			`spec: {schedule: "@daily", jobTemplate: {spec: {template: {spec: %[2]s}}}}}`,
		"Deployment":  workload("apps/v1", "Deployment", "", "{matchLabels: {a: b}}"),
		"ReplicaSet":  workload("apps/v1", "ReplicaSet", "", "{matchLabels: {a: b}}"),
		"DaemonSet":   workload("apps/v1", "DaemonSet", "", "{matchLabels: {a: b}}"),
		"StatefulSet": workload("apps/v1", "StatefulSet", "serviceName: s, ", "{matchLabels: {a: b}}"),
		"controller":  workload("v1", "ReplicationController", "", "{a: b}"),
	}
	containers := map[string]struct {
		spec   string
		warned bool
	}{
		"no request":       {`{name: c, image: c, resources: {limits: {memory: 1Mi}}}`, true},
		"by RESOURCE_NAME": {`{name: c, image: c, resources: {limits: {"{{ RESOURCE_NAME }}": "1"}}}`, false},
		"by a name":        {`{name: c, image: c, resources: {limits: {akri.sh/cam: "1"}}}`, false},
		"in another one":   {`{name: b, image: b}, {name: c, image: c, resources: {limits: {"{{ RESOURCE_NAME }}": "1"}}}`, false},
	}
	for how, tc := range containers {
		for level, name := range map[string]string{
			"instanceBrokerResources": "INSTANCE_NAME", "configurationBrokerResources": "CONFIGURATION_NAME",
		} {
			t.Run(how+", "+level, func(t *testing.T) {
				var objects []string
				for kind, object := range kinds {
					restart := map[bool]string{true: "restartPolicy: Never, "}[strings.HasSuffix(kind, "Job")]
					objects = append(objects, fmt.Sprintf(object, `"{{ `+name+` }}"`, "{"+restart+"containers: ["+tc.spec+"]}"))
				}
				lists := map[string]string{level: strings.Join(objects, ", ")}
				expect(t, admin.apply(configuration(lists["instanceBrokerResources"], lists["configurationBrokerResources"])), "")
				warnings := admin.warnings.take()
				for i := range objects {
					want := fmt.Sprintf("spec.%s[%d]: no container requests a device, so none gets the device's variables, files and mounts, "+
						`or a slot; if one uses the device, add two lines to it, "resources:" and " limits: {'{{ RESOURCE_NAME }}': '1'}"`, level, i)
					if strings.Contains(warnings, want) != tc.warned {
						t.Errorf("warned: %q, want %q: %v", warnings, want, tc.warned)
					}
				}
			})
		}
	}
}

func workload(version, kind, fields, selector string) string {
	return `{apiVersion: ` + version + `, kind: ` + kind + `, metadata: {name: %[1]s}, spec: {` + fields + `selector: ` + selector +
		`, template: {metadata: {labels: {a: b}}, spec: %[2]s}}}`
}

func TestDevicesOfOtherPrograms(t *testing.T) {
	w := newWorld(t)
	w.guard()
	admin := w.as("")
	const pod = `{apiVersion: v1, kind: Pod, metadata: {name: "cam-{{ INSTANCE.name }}", annotations: {akri.sh/for-each: INSTANCES}}, ` +
		`spec: {containers: [{name: c, image: c, args: [%q]}]}}`
	for name, tc := range map[string]struct {
		instance, configuration string
		warned                  bool
	}{
		"a Pod that reads a property": {instance: `{apiVersion: v1, kind: Pod, metadata: {name: "{{ INSTANCE_NAME }}"}, ` +
			`spec: {containers: [{name: c, image: c, args: ["--url={{ INSTANCE_PROPERTIES.URL }}"]}]}}`},
		"a Pod for each Instance":                        {configuration: fmt.Sprintf(pod, "--verbose"), warned: true},
		"a Pod for each Instance that reads a property":  {configuration: fmt.Sprintf(pod, "--url={{ INSTANCE.properties.URL }}")},
		"a Pod for each Instance that reads only a name": {configuration: fmt.Sprintf(pod, "--name={{ INSTANCE.name }}"), warned: true},
		"a Service": {instance: `{apiVersion: v1, kind: Service, metadata: {name: "{{ INSTANCE_NAME }}"}, spec: {ports: [{port: 80}]}}`},
	} {
		expect(t, admin.apply(configuration(tc.instance, tc.configuration)), "")
		if warnings := admin.warnings.take(); strings.Contains(warnings, "no container") != tc.warned {
			t.Errorf("%s: warned: %q", name, warnings)
		}
	}
}

func TestDevicesOfLegacyFields(t *testing.T) {
	w := newWorld(t)
	w.guard()
	admin := w.as("")
	const text = `
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: cam}
spec:
  discoveryHandler: {name: debugEcho, discoveryDetails: "descriptions: [foo0]"}
  brokerSpec:
    brokerPodSpec:
      containers: [{name: app, image: app, resources: {limits: {%q: 1}}}]
`
	expect(t, admin.apply(fmt.Sprintf(text, "memory")), "")
	const want = `spec.brokerSpec.brokerPodSpec: no container requests a device`
	warnings := admin.warnings.take()
	if !strings.Contains(warnings, want) || !strings.Contains(warnings, `limits: {'{{PLACEHOLDER}}': '1'}`) {
		t.Errorf("warned: %q, want %q and the lines to add", warnings, want)
	}
	expect(t, admin.apply(fmt.Sprintf(text, "{{PLACEHOLDER}}")), "")
	if warnings = admin.warnings.take(); strings.Contains(warnings, "no container") {
		t.Errorf("warned: %q", warnings)
	}
}
