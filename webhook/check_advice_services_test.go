package webhook

import (
	"strings"
	"testing"
)

// Authors are warned of Services of Akri's legacy fields that select nothing, and told what
// to add.
func TestServices(t *testing.T) {
	w := newWorld(t)
	w.guard()
	admin := w.as("")
	const (
		pod        = `{apiVersion: v1, kind: Pod, metadata: {name: "{{ %s }}"}, spec: {containers: [{name: c, image: c}]}}`
		deployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: "{{ %s }}"}, spec: {selector: {matchLabels: {a: b}}, ` +
			`template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: c}]}}}}`
		cron = `{apiVersion: batch/v1, kind: CronJob, metadata: {name: "{{ %s }}"}, spec: {schedule: "@daily", jobTemplate: ` +
			`{spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: c}]}}}}}}`
		config = `{apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ %s }}"}, data: {k: v}}`
		robot  = `{apiVersion: example.com/v1, kind: Robot, metadata: {name: "{{ %s }}"}, spec: {arms: 2}}`
		clones = `{apiVersion: example.com/v1, kind: Clones, metadata: {name: "{{ %s }}"}, spec: {sets: [{template: {LABELS` +
			`spec: {containers: [{name: c, image: c}]}}}]}}`
		noInstance      = "spec.instanceServiceSpec: the Service selects the label akri.sh/instance, which no Pod of the templates has; "
		noConfiguration = "spec.configurationServiceSpec: the Service selects the label akri.sh/configuration, " +
			"which no Pod of the templates has; "
		useOther = `add the line "akri.sh/instance: '{{ INSTANCE_NAME }}'" to the labels of Pods in instanceBrokerResources`
	)
	labeled := func(labels string) string {
		return strings.ReplaceAll(clones, "LABELS", map[bool]string{true: "metadata: {labels: " + labels + "}, "}[labels != ""])
	}
	for name, tc := range map[string]struct {
		fields, instance, group, want string
	}{
		"Pods of the Instances":                      {fields: "instance", instance: pod, group: deployment},
		"Deployments of the Instances, and others":   {fields: "instance configuration", instance: deployment + ", " + config, group: pod},
		"CronJobs of the Instances":                  {fields: "instance configuration", instance: cron},
		"Pods of the group only":                     {fields: "instance", group: pod, want: noInstance + useOther},
		"Deployments of the group only":              {fields: "instance configuration", group: deployment, want: noInstance + useOther},
		"CronJobs, and a ConfigMap of the Instances": {fields: "instance", instance: config, group: cron, want: noInstance + useOther},
		"Deployments of the group":                   {fields: "configuration", group: deployment},
		"no templates":                               {fields: "instance configuration"},
		"no Pods":                                    {fields: "instance configuration", instance: config, group: config},
		"no Pods of the Instances, another name":     {fields: "external", group: pod},
		"a custom kind with containers":              {fields: "instance", instance: strings.Replace(robot, "arms: 2", "containers: []", 1)},
		"a custom kind without a Pod template":       {fields: "instance configuration", instance: robot},
		"a custom kind without one, and others":      {fields: "instance", instance: robot, group: deployment},
		"a custom kind with LABEL_SELECTOR":          {fields: "instance configuration", instance: labeled(`"{{ LABEL_SELECTOR }}"`)},
		"a custom kind with the label": {
			fields: "instance", instance: labeled(`{a: b, akri.sh/instance: "{{ INSTANCE_NAME }}"}`),
		},
		"a custom kind with the other label": {
			fields: "configuration", group: labeled(`{akri.sh/configuration: "{{ CONFIGURATION_NAME }}"}`),
		},
		"a custom kind with a key that is an expression": {fields: "instance",
			instance: labeled(`{"akri.sh/{{ lower \"INSTANCE\" }}": "{{ INSTANCE_NAME }}"}`)},
		"a custom kind without labels": {fields: "instance", instance: labeled(""), want: noInstance + useOther},
		"a custom kind with other labels": {fields: "instance", instance: config + ", " + labeled("{a: b}"), group: pod,
			want: noInstance + useOther},
		"a custom kind of the group": {fields: "configuration", group: labeled("{a: b}"), want: noConfiguration +
			`add the line "akri.sh/configuration: '{{ CONFIGURATION_NAME }}'" to the labels of Pods in configurationBrokerResources`},
		"a custom kind of the group with LABEL_SELECTOR": {
			fields: "instance configuration", group: labeled(`"{{ LABEL_SELECTOR }}"`), want: noInstance + useOther,
		},
		"both": {fields: "instance configuration", instance: labeled("{a: b}"), want: noConfiguration},
	} {
		t.Run(name, func(t *testing.T) {
			instance, group := strings.ReplaceAll(tc.instance, "%s", "INSTANCE_NAME"), strings.ReplaceAll(tc.group, "%s", "CONFIGURATION_NAME")
			object := configuration(instance, group)
			for field := range strings.FieldsSeq(tc.fields) {
				object += map[string]string{
					"instance":      "  instanceServiceSpec: {ports: [{port: 80}]}\n",
					"configuration": "  configurationServiceSpec: {ports: [{port: 80}]}\n",
					"external":      "  instanceServiceSpec: {type: ExternalName, externalName: example.com}\n",
				}[field]
			}
			expect(t, admin.apply(object), "")
			expectWarning(t, admin.warnings.take(), tc.want, "the Service selects")
		})
	}
}

func TestServicesOfABroker(t *testing.T) {
	w := newWorld(t)
	w.guard()
	admin := w.as("")
	const pod = `{apiVersion: v1, kind: Pod, metadata: {name: "{{ CONFIGURATION_NAME }}"}, spec: {containers: [{name: c, image: c}]}}`
	object := configuration("", pod) + `
  brokerSpec: {brokerPodSpec: {containers: [{name: c, image: c}]}}
  instanceServiceSpec: {ports: [{port: 80}]}
`
	expect(t, admin.apply(object), "")
	expectWarning(t, admin.warnings.take(), "", "the Service selects")
}
