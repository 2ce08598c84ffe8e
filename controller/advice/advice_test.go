package advice

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"akri.sh/akri/templating"
)

// warned returns the warnings about a template, rendered for one or two devices.
func warned(t *testing.T, level templating.Level, capacity int64, text string) string {
	t.Helper()
	var source map[string]any
	if err := yaml.Unmarshal([]byte(text), &source); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	set, mistakes := templating.Compile(level, []map[string]any{source})
	devices := []templating.Instance{{Name: "cam-1", Nodes: []string{"a", "b"}, Shared: true}, {Name: "cam-2", Nodes: []string{"a"}}}
	values := templating.Values{Configuration: "cam", Namespace: "default", Capacity: capacity, Instance: devices[0], Instances: devices}
	objects, more := set.Render(values)
	if len(mistakes)+len(more) > 0 || len(objects) == 0 {
		t.Fatalf("%v %v", mistakes, more)
	}
	var lines []string
	var members []Member
	for _, object := range objects {
		member, warnings := Of(source, object, values)
		members = append(members, member)
		for _, mistake := range warnings {
			lines = append(lines, mistake.In("").Error())
		}
	}
	for _, mistake := range Together(members) {
		lines = append(lines, mistake.In("").Error())
	}
	return strings.Join(lines, "\n")
}

// An update is warned of if, and only if, it cannot make progress.
func TestUpdates(t *testing.T) {
	const remedy = `stop the old Pod first, with two lines in the spec of the Deployment, "strategy:" and ` +
		`"  rollingUpdate: {maxSurge: 0, maxUnavailable: 1}"`
	one, two := `{limits: {"{{ RESOURCE_NAME }}": "1"}}`, `{limits: {"{{ RESOURCE_NAME }}": 2}}`
	deployment := func(update string) string { return "strategy: {rollingUpdate: {" + update + "}}, " }
	for name, tc := range map[string]struct {
		kind, spec, resources string
		group                 bool
		capacity              int64
		want                  string // part of the warning; empty for none
	}{
		"the only slot": {resources: one, capacity: 1, want: "spec.strategy: an update waits forever, because it starts a new Pod before " +
			"it stops an old one, and there is no slot for the new one (Pods: 1, slots for each: 1, of others: 0, in all: 1); " + remedy},
		"a slot more":                      {resources: one, capacity: 2},
		"two of three slots":               {resources: two, capacity: 3, want: "(Pods: 1, slots for each: 2, of others: 0, in all: 3)"},
		"two of four slots":                {resources: two, capacity: 4},
		"as many replicas as nodes":        {spec: `replicas: "{{ len NODES }}", `, resources: one, capacity: 2, want: "(Pods: 2,"},
		"more replicas than slots":         {spec: "replicas: 3, ", resources: one, capacity: 2, want: "(Pods: 3,"},
		"no replicas":                      {spec: "replicas: 0, ", resources: one, capacity: 1},
		"a quarter of four may be missing": {spec: "replicas: 4, ", resources: one, capacity: 4},
		"of another Configuration":         {resources: `{limits: {akri.sh/mic: "1"}}`, capacity: 1},
		"of one whose name begins alike":   {resources: `{limits: {akri.sh/cam-hall: "1"}}`, capacity: 1},
		"by name":                          {resources: `{requests: {"akri.sh/{{ INSTANCE_NAME }}": "1"}}`, capacity: 1, want: "(Pods: 1,"},
		"of unknown number":                {group: true, resources: `{limits: {"akri.sh/{{ CONFIGURATION_NAME }}": "1"}}`, capacity: 1},
		"of another kind":                  {kind: "Robot", resources: one, capacity: 1},
		"a StatefulSet":                    {kind: "StatefulSet", resources: one, capacity: 1},
		"Recreate":                         {spec: "strategy: {type: Recreate}, ", resources: one, capacity: 1},
		"only the type":                    {spec: "strategy: {type: RollingUpdate}, ", resources: one, capacity: 1, want: "spec.strategy: "},
		"maxSurge 0":                       {spec: deployment("maxSurge: 0"), resources: one, capacity: 1},
		"maxSurge 0 percent":               {spec: deployment("maxSurge: 0%"), resources: one, capacity: 1},
		"maxUnavailable 1":                 {spec: deployment("maxUnavailable: 1"), resources: one, capacity: 1},
		"maxUnavailable half of one":       {spec: deployment("maxUnavailable: 50%"), resources: one, capacity: 1, want: "(Pods: 1,"},
		"both in numbers":                  {spec: deployment("maxSurge: 1, maxUnavailable: 0"), resources: one, capacity: 1, want: "(Pods: 1,"},
		"no such number":                   {spec: deployment("maxSurge: many"), resources: one, capacity: 1},
		"a wrong type":                     {spec: `replicas: "one", `, resources: one, capacity: 1},
		"a DaemonSet":                      {kind: "DaemonSet", resources: one, capacity: 1},
		"of the group, some replicas":      {group: true, spec: "replicas: 2, ", resources: one, capacity: 1},
		"of the group, one for each device": {group: true, spec: `replicas: "{{ len INSTANCES }}", `, resources: one, capacity: 1,
			want: "(Pods: 2, slots for each: 1, of others: 0, in all: 2)"},
		"of the group, one for each device with two slots": {
			group: true, spec: `replicas: "{{ len INSTANCES }}", `, resources: one, capacity: 2,
		},
		"of the group, each for a device": {group: true, resources: `{limits: {"akri.sh/{{ INSTANCE.name }}": "1"}}`, capacity: 1,
			want: "(Pods: 1, slots for each: 1, of others: 0, in all: 1)"},
	} {
		t.Run(name, func(t *testing.T) {
			level, metadata := templating.InstanceLevel, `name: "{{ INSTANCE_NAME }}"`
			if tc.group {
				level, metadata = templating.ConfigurationLevel, "name: x"
			}
			if strings.Contains(tc.resources, "INSTANCE.name") {
				metadata = `name: "{{ INSTANCE.name }}", annotations: {akri.sh/for-each: INSTANCES}`
			}
			got := warned(t, level, tc.capacity, `{apiVersion: apps/v1, kind: `+cmp.Or(tc.kind, "Deployment")+
				`, metadata: {`+metadata+`}, spec: {`+tc.spec+`selector: {matchLabels: {a: b}}, template: {spec: {containers: `+
				`[{name: c, image: c, resources: `+tc.resources+`}]}}}}`)
			if !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") {
				t.Errorf("warned %q, want %q", got, tc.want)
			}
		})
	}
}

func TestJobs(t *testing.T) {
	const want = `spec.ttlSecondsAfterFinished: the Job is deleted when it has finished, and then created again, so it runs ` +
		`again and again; ` +
		`annotate it akri.sh/once: "true" to run it once per device, or "false" if that is intended`
	for name, tc := range map[string]struct {
		annotations, spec, want string
	}{
		"a time to live":         {spec: "ttlSecondsAfterFinished: 60, ", want: want},
		"none at all":            {spec: "ttlSecondsAfterFinished: 0, ", want: want},
		"once":                   {annotations: `akri.sh/once: "true"`, spec: "ttlSecondsAfterFinished: 60, "},
		"again on purpose":       {annotations: `akri.sh/once: "false"`, spec: "ttlSecondsAfterFinished: 60, "},
		"without time to live":   {},
		"no time to live at all": {spec: "ttlSecondsAfterFinished: null, "},
	} {
		t.Run(name, func(t *testing.T) {
			got := warned(t, templating.InstanceLevel, 1, `{apiVersion: batch/v1, kind: Job, metadata: `+
				`{name: "{{ INSTANCE_NAME }}", annotations: {`+tc.annotations+`}}, spec: {`+tc.spec+
				`template: {spec: {restartPolicy: Never, containers: [{name: c, image: c, resources: {limits: {"{{ RESOURCE_NAME }}": 1}}}]}}}}`)
			if got != tc.want {
				t.Errorf("warned %q, want %q", got, tc.want)
			}
		})
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

// A request of any device is warned of where it is that of one device.
func TestAnyDevice(t *testing.T) {
	const pod = `spec: {containers: [{name: a, image: a}, ` +
		`{name: c, image: c, resources: {requests: {akri.sh/cam: 1}, limits: {akri.sh/cam: 1}}}]}`
	const metadata = `metadata: {name: "{{ INSTANCE_NAME }}"}, `
	const want = "containers[1].resources: it requests any device of the Configuration, perhaps not that of its Instance; " +
		"write {{ RESOURCE_NAME }}"
	for text, want := range map[string]string{
		`{apiVersion: v1, kind: Pod, ` + metadata + pod + `}`:                                       "spec." + want,
		`{apiVersion: apps/v1, kind: StatefulSet, ` + metadata + `spec: {template: {` + pod + `}}}`: "spec.template.spec." + want,
		`{apiVersion: v1, kind: Pod, ` + metadata + strings.ReplaceAll(pod, "cam", "mic") + `}`:     "",
	} {
		if got := warned(t, templating.InstanceLevel, 1, text); got != want {
			t.Errorf("warned %q, want %q", got, want)
		}
	}
	if got := warned(t, templating.ConfigurationLevel, 1, `{apiVersion: v1, kind: Pod, metadata: {name: x}, `+pod+`}`); got != "" {
		t.Errorf("warned %q of the Configuration's own", got)
	}
}
