package advice

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"akri.sh/akri/templating"
)

// An update is warned of if, and only if, it cannot make progress.
func TestUpdates(t *testing.T) {
	const remedy = `stop the old Pod first, with two lines in the spec of the Deployment, "strategy:" and ` +
		`"  rollingUpdate: {maxSurge: 0, maxUnavailable: 1}"`
	one, two := `{limits: {"{{ RESOURCE_NAME }}": "1"}}`, `{limits: {"{{ RESOURCE_NAME }}": 2}}`
	deployment := func(update string) string { return "strategy: {rollingUpdate: {" + update + "}}, " }
	for name, tc := range map[string]struct {
		spec, resources string
		group           bool
		capacity        int64
		want            string // part of the warning; empty for none
	}{
		"the only slot": {resources: one, capacity: 1, want: "spec.strategy: an update waits forever, because it starts a new Pod before " +
			"it stops an old one, and there is no slot for the new one (Pods: 1, slots per Pod: 1, slots of other Pods: 0, in total: 1); " + remedy},
		"two of three slots":               {resources: two, capacity: 3, want: "slots per Pod: 2, slots of other Pods: 0, in total: 3)"},
		"two of four slots":                {resources: two, capacity: 4},
		"as many replicas as nodes":        {spec: `replicas: "{{ len NODES }}", `, resources: one, capacity: 2, want: "(Pods: 2,"},
		"more replicas than slots":         {spec: "replicas: 3, ", resources: one, capacity: 2, want: "(Pods: 3,"},
		"a quarter of four may be missing": {spec: "replicas: 4, ", resources: one, capacity: 4},
		"of another Configuration":         {resources: `{limits: {akri.sh/mic: "1"}}`, capacity: 1},
		"of one whose name begins alike":   {resources: `{limits: {akri.sh/cam-hall: "1"}}`, capacity: 1},
		"by name":                          {resources: `{requests: {"akri.sh/{{ INSTANCE_NAME }}": "1"}}`, capacity: 1, want: "(Pods: 1,"},
		"of unknown number":                {group: true, resources: `{limits: {"akri.sh/{{ CONFIGURATION_NAME }}": "1"}}`, capacity: 1},
		"only the type":                    {spec: "strategy: {type: RollingUpdate}, ", resources: one, capacity: 1, want: "spec.strategy: "},
		"maxSurge 0":                       {spec: deployment("maxSurge: 0"), resources: one, capacity: 1},
		"maxUnavailable 1":                 {spec: deployment("maxUnavailable: 1"), resources: one, capacity: 1},
		"maxUnavailable half of one":       {spec: deployment("maxUnavailable: 50%"), resources: one, capacity: 1, want: "(Pods: 1,"},
		"both in numbers":                  {spec: deployment("maxSurge: 1, maxUnavailable: 0"), resources: one, capacity: 1, want: "(Pods: 1,"},
		"no such number":                   {spec: deployment("maxSurge: many"), resources: one, capacity: 1},
		"of the group, some replicas":      {group: true, spec: "replicas: 2, ", resources: one, capacity: 1},
		"of the group, one for each device": {group: true, spec: `replicas: "{{ len INSTANCES }}", `, resources: one, capacity: 1,
			want: "(Pods: 3, slots per Pod: 1, slots of other Pods: 0, in total: 3)"},
		"of the group, one for each device with two slots": {
			group: true, spec: `replicas: "{{ len INSTANCES }}", `, resources: one, capacity: 2,
		},
		"of the group, each for a device": {group: true, resources: `{limits: {"akri.sh/{{ INSTANCE.name }}": "1"}}`, capacity: 1,
			want: "(Pods: 1, slots per Pod: 1, slots of other Pods: 0, in total: 1)"},
	} {
		t.Run(name, func(t *testing.T) {
			group, metadata := "", `name: "{{ INSTANCE_NAME }}"`
			if tc.group {
				group, metadata = "group:", "name: x"
			}
			if strings.Contains(tc.resources, "INSTANCE.name") {
				metadata = `name: "{{ INSTANCE.name }}", annotations: {akri.sh/for-each: INSTANCES}`
			}
			got := advised(t, tc.capacity, group+`[{apiVersion: apps/v1, kind: Deployment, metadata: {`+metadata+`}, spec: {`+
				tc.spec+`selector: {matchLabels: {a: b}}, template: {spec: {containers: [{name: c, image: c, `+
				`resources: `+tc.resources+`}]}}}}]`)
			if !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") {
				t.Errorf("warned %q, want %q", got, tc.want)
			}
		})
	}
}

// A Job that is deleted runs again. A request of any device is warned of where it is that of one.
func TestOf(t *testing.T) {
	const pod = `spec: {restartPolicy: Never, containers: [{name: a, image: a}, ` +
		`{name: c, image: c, resources: {requests: {akri.sh/cam: 1}, limits: {akri.sh/cam: 1}}}]}`
	job := func(annotations, spec string) string {
		return `{apiVersion: batch/v1, kind: Job, metadata: {name: "{{ INSTANCE_NAME }}", annotations: {` + annotations + `}}, spec: {` + spec +
			strings.ReplaceAll(`template: {`+pod+`}}}`, "akri.sh/cam", `"{{ RESOURCE_NAME }}"`)
	}
	const again = `instanceBrokerResources[0].spec.ttlSecondsAfterFinished: the Job is deleted when it has finished, and then created ` +
		`again, so it runs again and again; annotate it akri.sh/once: "true" to run it once per device, or "false" if that is intended`
	const one = `{apiVersion: v1, kind: Pod, metadata: {name: "{{ INSTANCE_NAME }}"}, ` + pod + `}`
	const set = `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: "{{ INSTANCE_NAME }}"}, ` +
		`spec: {selector: {matchLabels: "{{ LABEL_SELECTOR }}"}, template: {` + pod + `}}}`
	const other = "containers[1].resources: it requests any device of the Configuration, perhaps not that of its Instance; " +
		"write {{ RESOURCE_NAME }}"
	for name, tc := range map[string]struct{ template, want string }{
		"a time to live":                {job("", "ttlSecondsAfterFinished: 60, "), again},
		"none at all":                   {job("", "ttlSecondsAfterFinished: 0, "), again},
		"once":                          {job(`akri.sh/once: "true"`, "ttlSecondsAfterFinished: 60, "), ""},
		"again on purpose":              {job(`akri.sh/once: "false"`, "ttlSecondsAfterFinished: 60, "), ""},
		"no time to live":               {job("", "ttlSecondsAfterFinished: null, "), ""},
		"any device":                    {one, "instanceBrokerResources[0].spec." + other},
		"any device of several Pods":    {set, "instanceBrokerResources[0].spec.template.spec." + other},
		"of another Configuration":      {strings.ReplaceAll(one, "cam", "mic"), ""},
		"any device, for the whole one": {"group:" + strings.Replace(one, "INSTANCE_NAME", "CONFIGURATION_NAME", 1), ""},
	} {
		if got := advised(t, 1, strings.Replace(tc.template, "{apiVersion", "- {apiVersion", 1)); got != tc.want {
			t.Errorf("%s: warned %q, want %q", name, got, tc.want)
		}
	}
}

// A text in an old field that looks like an expression is warned of, in values and keys.
func TestOldFields(t *testing.T) {
	var content map[string]any
	if err := yaml.Unmarshal([]byte(`
apiVersion: batch/v1
kind: Job
spec:
  ttlSecondsAfterFinished: 60
  template:
    metadata: {labels: {"{{PLACEHOLDER}}": x}}
    spec:
      containers:
      - env: [{name: A, value: PLACEHOLDER}, {name: B, value: "{{ .Node }}"}, {name: PLACEHOLDER_TWO, value: of PLACEHOLDER}]
        resources: {limits: {akri.sh/cam: 1}, requests: {"{{ PLACEHOLDER }}": "1"}}
        command: [akri.sh/cam]
`), &content); err != nil {
		t.Fatal(err)
	}
	var got []string
	object := templating.Object{Content: content, Directives: templating.Directives{Once: true}}
	_, warnings := Of(nil, object, templating.Values{Configuration: "cam"})
	for _, d := range warnings {
		got = append(got, d.In("").Path+" "+d.Hint)
	}
	const container = "spec.template.spec.containers[0]."
	const replaced = " write an expression in instanceBrokerResources, to which kubectl akri convert moves the field"
	want := []string{
		container + "resources write {{PLACEHOLDER}}",
		`spec.template.metadata.labels["{{PLACEHOLDER}}"]` + replaced,
		container + "env[0].value" + replaced, container + "env[1].value" + replaced,
		container + `resources.requests["{{ PLACEHOLDER }}"]` + replaced,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
	service := templating.Object{
		Origin:  templating.Origin{Level: templating.ConfigurationLevel},
		Content: map[string]any{"apiVersion": "v1", "kind": "Service", "spec": map[string]any{"externalName": "{{ NAME }}"}},
	}
	_, warnings = Of(nil, service, templating.Values{Configuration: "cam"})
	if len(warnings) != 1 || !strings.HasPrefix(warnings[0].Hint, "write an expression in configurationBrokerResources, to which") {
		t.Errorf("warned %v of the Service of the Configuration", warnings)
	}
}
