package webhook

import (
	"slices"
	"strings"
	"testing"
)

// Authors are warned, once for each template, of what is valid but does not work as they
// expect. The package advice has the cases.
func TestAdvice(t *testing.T) {
	w := newWorld(t)
	w.guard()
	admin := w.as("")
	const (
		deployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: "{{ INSTANCE_NAME }}"}, spec: {STRATEGY` +
			`replicas: "{{ len NODES }}", selector: {matchLabels: "{{ LABEL_SELECTOR }}"}, template: {spec: {containers: [{name: c, ` +
			`image: "c:{{ INSTANCE_PROPERTIES.TAG }}", resources: {limits: {"{{ RESOURCE_NAME }}": "1"}}}]}}}}`
		job = `{apiVersion: batch/v1, kind: Job, metadata: {name: "{{ CONFIGURATION_NAME }}"}, spec: {ttlSecondsAfterFinished: 60, ` +
			`template: {spec: {restartPolicy: Never, containers: [{name: c, image: c, resources: {limits: {"{{ RESOURCE_NAME }}": "1"}}}]}}}}`
	)
	const service = `{apiVersion: v1, kind: Service, metadata: {name: "{{ INSTANCE_NAME }}"}, spec: {selector: {app: x}, ports: [{port: 80}]}}`
	pod := func(name, annotations string) string {
		return `{apiVersion: v1, kind: Pod, metadata: {name: "` + name + `", labels: {app: x}, annotations: {` + annotations + `}}, spec: ` +
			`{containers: [{name: c, image: c, resources: {limits: {"{{ RESOURCE_NAME }}": "1"}}}]}}`
	}
	for name, tc := range map[string]struct {
		instance, group, capacity string
		want                      []string // parts of the only warnings
	}{
		"an update, however many nodes there are": {instance: strings.Replace(deployment, "STRATEGY", "", 1), capacity: "1",
			want: []string{"spec.instanceBrokerResources[0].spec.strategy: an update waits forever"}},
		"an update, if two nodes see the device": {instance: strings.Replace(deployment, "STRATEGY", "", 1), capacity: "2",
			want: []string{"and there is no slot for the new one (Pods: 2, slots for each: 1, of others: 0, in all: 2)"}},
		"an update that ends the old Pod first": {
			instance: strings.Replace(deployment, "STRATEGY", "strategy: {rollingUpdate: {maxSurge: 0}}, ", 1), capacity: "1",
		},
		"a Job": {group: job, capacity: "1",
			want: []string{"spec.configurationBrokerResources[0].spec.ttlSecondsAfterFinished: the Job is deleted"}},
		"both": {instance: strings.Replace(deployment, "STRATEGY", "", 1), group: job, capacity: "1",
			want: []string{"[0].spec.ttlSecondsAfterFinished", "[0].spec.strategy"}},
		"a label that is equal for all devices": {instance: service + ", " + pod("{{ INSTANCE_NAME }}", ""), capacity: "1",
			want: []string{`spec.instanceBrokerResources[0].spec.selector: it selects not only the Pods of instanceBrokerResources[1], but also ` +
				`those of other devices; add "akri.sh/instance: '{{ INSTANCE_NAME }}'" to it`}},
		"more Pods than slots": {instance: pod("{{ INSTANCE_NAME }}-a", "") + ", " + pod("{{ INSTANCE_NAME }}-b", ""), capacity: "1",
			want: []string{"spec.instanceBrokerResources[1]: the Pods of this template and of instanceBrokerResources[0] request more slots"}},
		"one Pod for each kind of device": {
			instance: pod("{{ INSTANCE_NAME }}-a", `akri.sh/when: '{{ eq INSTANCE_PROPERTIES.KIND "1" }}'`) + ", " +
				pod("{{ INSTANCE_NAME }}-b", `akri.sh/when: '{{ ne INSTANCE_PROPERTIES.KIND "1" }}'`), capacity: "1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, admin.apply(configuration(tc.instance, tc.group)+"  capacity: "+tc.capacity+"\n"), "")
			warnings := admin.warnings.take()
			lines := strings.FieldsFunc(warnings, func(r rune) bool { return r == '\n' })
			if !slices.EqualFunc(lines, tc.want, strings.Contains) {
				t.Errorf("warned: %q, want %q", lines, tc.want)
			}
		})
	}
}
