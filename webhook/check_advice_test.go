package webhook

import (
	"slices"
	"strings"
	"testing"
)

// Authors are warned, once for each template, of what is valid but does not work as they
// expect, and told what to write. The package advice has more cases.
func TestAdvice(t *testing.T) {
	w := newWorld(t)
	w.guard()
	admin := w.as("")
	const (
		container  = `{name: c, image: "c:{{ INSTANCE_PROPERTIES.TAG }}", resources: {limits: {"{{ RESOURCE_NAME }}": "1"}}}`
		idle       = `{name: c, image: c, resources: {limits: {memory: 1Mi}}}`
		deployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: "{{ INSTANCE_NAME }}"}, spec: {STRATEGY` +
			`replicas: "{{ len NODES }}", selector: {matchLabels: "{{ LABEL_SELECTOR }}"}, template: {spec: {INIT containers: [` +
			container + `]}}}}`
		job = `{apiVersion: batch/v1, kind: Job, metadata: {name: "{{ CONFIGURATION_NAME }}"}, spec: {ttlSecondsAfterFinished: 60, ` +
			`template: {spec: {restartPolicy: Never, containers: [{name: c, image: c, resources: {limits: {"{{ RESOURCE_NAME }}": "1"}}}]}}}}`
		service = `{apiVersion: v1, kind: Service, metadata: {name: "{{ INSTANCE_NAME }}"}, spec: {selector: {app: x}, ports: [{port: 80}]}}`
		claim   = `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: "{{ CONFIGURATION_NAME }}-data"}, ` +
			`spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`
		cron = `{apiVersion: batch/v1, kind: CronJob, metadata: {name: "{{ INSTANCE_NAME }}"}, spec: {schedule: "@daily", jobTemplate: ` +
			`{spec: {template: {spec: {restartPolicy: Never, containers: [` + idle + `]}}}}}}`
		each = `{apiVersion: v1, kind: Pod, metadata: {name: "cam-{{ INSTANCE.name }}", annotations: {akri.sh/for-each: INSTANCES}}, ` +
			`spec: {containers: [{name: c, image: c, args: ["ARG"]}]}}`
		groupPod = `{apiVersion: v1, kind: Pod, metadata: {name: "{{ CONFIGURATION_NAME }}"}, ` +
			`spec: {containers: [{name: c, image: c, resources: {limits: {"{{ RESOURCE_NAME }}": "1"}}}]}}`
		clones = `{apiVersion: example.com/v1, kind: Clones, metadata: {name: "{{ INSTANCE_NAME }}"}, spec: {sets: [{template: ` +
			`{metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: c}]}}}]}}`

		instanceService      = "  instanceServiceSpec: {ports: [{port: 80}]}\n"
		configurationService = "  configurationServiceSpec: {ports: [{port: 80}]}\n"

		noKind    = `the API server has no kind "Clones"`
		noRequest = ": no container requests a device, so none gets the device's variables, files and mounts, or a slot; " +
			`if one uses the device, add two lines to it, "resources:" and " limits: {'{{ RESOURCE_NAME }}': '1'}"`
		noInstance = "spec.instanceServiceSpec: the Service selects the label akri.sh/instance, which no Pod of the templates has; " +
			`add the line "akri.sh/instance: '{{ INSTANCE_NAME }}'" to the labels of Pods in instanceBrokerResources`
		noConfiguration = "spec.configurationServiceSpec: the Service selects the label akri.sh/configuration, which no Pod of the templates " +
			`has; add the line "akri.sh/configuration: '{{ CONFIGURATION_NAME }}'" to the labels of Pods in configurationBrokerResources`
	)
	with := func(text string, pairs ...string) string {
		return strings.NewReplacer(append(pairs, "STRATEGY", "", "INIT", "")...).Replace(text)
	}
	pod := func(name, annotations string) string {
		return `{apiVersion: v1, kind: Pod, metadata: {name: "` + name + `", labels: {app: x}, annotations: {` + annotations + `}}, spec: ` +
			`{containers: [{name: c, image: c, resources: {limits: {"{{ RESOURCE_NAME }}": "1"}}}]}}`
	}
	init := func(fields string) string { // of a container
		return with(deployment, "INIT", `initContainers: [{name: a, image: a}, {name: b, image: b, `+fields+`}], `)
	}
	broker := func(before, fields string) string {
		return "  brokerSpec: {brokerPodSpec: {" + before + "containers: [{name: c, image: c, " + fields + "}]}}\n"
	}
	onePod, labeled := pod("{{ INSTANCE_NAME }}", ""), with(clones, "{a: b}", `"{{ LABEL_SELECTOR }}"`)
	ofGroup := strings.NewReplacer("INSTANCE_NAME", "CONFIGURATION_NAME")
	for name, tc := range map[string]struct {
		instance, group, fields string
		want                    []string // parts of the only warnings
	}{
		"an update, however many nodes there are": {instance: with(deployment), fields: "  capacity: 1\n",
			want: []string{"spec.instanceBrokerResources[0].spec.strategy: an update waits forever"}},
		"an update, if two nodes see the device": {instance: with(deployment), fields: "  capacity: 2\n",
			want: []string{"and there is no slot for the new one (Pods: 2, slots per Pod: 1, slots of other Pods: 0, in total: 2)"}},
		"an update that ends the old Pod first": {
			instance: with(deployment, "STRATEGY", "strategy: {rollingUpdate: {maxSurge: 0}}, "), fields: "  capacity: 1\n",
		},
		"a Job and an update": {instance: with(deployment), group: job, fields: "  capacity: 1\n",
			want: []string{"spec.configurationBrokerResources[0].spec.ttlSecondsAfterFinished: the Job is deleted", "[0].spec.strategy"}},
		"a label that is equal for all devices": {instance: service + ", " + onePod,
			want: []string{`spec.instanceBrokerResources[0].spec.selector: it selects not only the Pods of instanceBrokerResources[1], but also ` +
				`those of other devices; add "akri.sh/instance: '{{ INSTANCE_NAME }}'" to it`}},
		"more Pods than slots": {
			instance: pod("{{ INSTANCE_NAME }}-a", "") + ", " + pod("{{ INSTANCE_NAME }}-b", ""), fields: "  capacity: 1\n",
			want: []string{"spec.instanceBrokerResources[1]: the Pods of this template and of instanceBrokerResources[0] request more slots"},
		},
		"one Pod for each kind of device": {
			instance: pod("{{ INSTANCE_NAME }}-a", `akri.sh/when: '{{ eq INSTANCE_PROPERTIES.KIND "1" }}'`) + ", " +
				pod("{{ INSTANCE_NAME }}-b", `akri.sh/when: '{{ ne INSTANCE_PROPERTIES.KIND "1" }}'`), fields: "  capacity: 1\n",
		},

		"a volume for all devices": {group: claim, want: []string{"spec.configurationBrokerResources[0]: the PersistentVolumeClaim is deleted " +
			"when the last device disappears, even for a moment, and its data with it; annotate it akri.sh/deletion-policy: orphan"}},
		"a volume for each device": {instance: strings.Replace(claim, "CONFIGURATION_NAME", "INSTANCE_NAME", 1),
			want: []string{"spec.instanceBrokerResources[0]: the PersistentVolumeClaim is deleted when its device disappears"}},
		"a volume that is kept": {group: strings.Replace(claim, `-data"`, `-data", annotations: {akri.sh/deletion-policy: orphan}`, 1)},

		"programs without a device": {
			instance: strings.Replace(onePod, `limits: {"{{ RESOURCE_NAME }}": "1"}`, "limits: {memory: 1Mi}", 1) + "," + cron,
			want:     []string{"spec.instanceBrokerResources[0]" + noRequest, "spec.instanceBrokerResources[1]" + noRequest},
		},
		"a request in another container": {instance: strings.Replace(onePod, "[{", "[{name: b, image: b}, {", 1)},
		"a Pod that reads a property": {instance: `{apiVersion: v1, kind: Pod, metadata: {name: "{{ INSTANCE_NAME }}"}, ` +
			`spec: {containers: [{name: c, image: c, args: ["--url={{ INSTANCE_PROPERTIES.URL }}"]}]}}`},
		"a Pod for each Instance that reads a property": {group: with(each, "ARG", "--url={{ INSTANCE.properties.URL }}")},
		"a Pod for each Instance that reads only a name": {group: with(each, "ARG", "--name={{ INSTANCE.name }}"),
			want: []string{"spec.configurationBrokerResources[0]" + noRequest}},
		"a broker without a device": {fields: broker("", "resources: {}"),
			want: []string{"spec.brokerSpec.brokerPodSpec: no container requests a device"}},
		"a broker": {fields: broker("", `resources: {limits: {"{{PLACEHOLDER}}": 1}}`)},

		"an init container": {instance: init(`resources: {limits: {"{{ RESOURCE_NAME }}": 1}}`), fields: "  capacity: 9\n",
			want: []string{"spec.instanceBrokerResources[0].spec.template.spec.initContainers[1]: the init container b requests a device, "}},
		"a sidecar": {
			instance: init(`restartPolicy: Always, resources: {limits: {"{{ RESOURCE_NAME }}": 1}}`), fields: "  capacity: 9\n",
		},
		"an init container of another vendor": {instance: init(`resources: {limits: {"example.com/fpga": 1}}`), fields: "  capacity: 9\n"},
		"a broker with both": {
			fields: broker(`initContainers: [{name: b, image: b, resources: {limits: {"{{PLACEHOLDER}}": 1}}}], `, `args: ["{{ NODE }}"]`),
			want: []string{
				"spec.brokerSpec.brokerPodSpec.initContainers[0]: the init container b requests a device",
				"spec.brokerSpec.brokerPodSpec.containers[0].args[0]: this text is not replaced",
			},
		},

		"a Service without Pods":                 {fields: instanceService + configurationService},
		"a Service of a device's Pods":           {instance: onePod, fields: instanceService + configurationService},
		"a Service of a device, and Pods of all": {group: groupPod, fields: instanceService + configurationService, want: []string{noInstance}},
		"a Service of another name": {group: groupPod,
			fields: "  instanceServiceSpec: {type: ExternalName, externalName: x.example}\n"},
		"a Service of a broker": {group: groupPod, fields: instanceService + broker("", `resources: {limits: {"{{PLACEHOLDER}}": 1}}`)},
		"a Service, and a custom kind without Pods": {instance: strings.Replace(clones, "containers", "arms", 1), fields: instanceService,
			want: []string{noKind}},
		"a Service, and a custom kind with Pods":    {instance: clones, fields: instanceService, want: []string{noKind, noInstance}},
		"a Service, and a custom kind with a label": {instance: labeled, fields: instanceService, want: []string{noKind}},
		"a Service for all, and a custom kind": {group: ofGroup.Replace(clones), fields: configurationService,
			want: []string{noKind, noConfiguration}},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, admin.apply(configuration(tc.instance, tc.group)+tc.fields), "")
			lines := strings.FieldsFunc(admin.warnings.take(), func(r rune) bool { return r == '\n' })
			ok := len(lines) == len(tc.want)
			for _, want := range tc.want {
				ok = ok && slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, want) })
			}
			if !ok {
				t.Errorf("warned: %q, want %q", lines, tc.want)
			}
		})
	}
}
