package advice

import (
	"cmp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"akri.sh/akri/templating"
)

// advised returns the warnings about templates that are rendered for three devices, one of
// which two nodes see. Templates of the Configuration follow a line "group:".
func advised(t *testing.T, capacity int64, templates string) string {
	t.Helper()
	devices := []templating.Instance{
		{Name: "cam-1", Nodes: []string{"a"}, Properties: map[string]string{"ID": "x"}},
		{Name: "cam-2", Nodes: []string{"a"}, Properties: map[string]string{"ID": "x"}},
		{Name: "cam-3", Nodes: []string{"a", "b"}, Shared: true, Properties: map[string]string{"ID": "x"}},
	}
	var members []Member
	var warnings templating.Diagnostics
	instance, group, _ := strings.Cut(templates, "group:")
	for i, text := range []string{instance, group} {
		level := templating.Level(i)
		var sources []map[string]any
		if err := yaml.Unmarshal([]byte(text), &sources); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		set, mistakes := templating.Compile(level, sources)
		render := func(values templating.Values) {
			values.Configuration, values.Namespace, values.Capacity = "cam", "default", capacity
			objects, more := set.Render(values)
			if len(mistakes)+len(more) > 0 {
				t.Fatalf("%v %v", mistakes, more)
			}
			for _, object := range objects {
				member, found := Of(sources[object.Origin.Index], object, values)
				members, warnings = append(members, member), append(warnings, found...)
			}
		}
		if level == templating.ConfigurationLevel {
			render(templating.Values{Instances: devices})
			continue
		}
		for _, device := range devices {
			render(templating.Values{Instance: device})
		}
	}
	seen := map[string]bool{}
	var lines []string
	for _, warning := range append(warnings, Together(members)...) {
		if at := warning.Field.Below(warning.Origin.String()); !seen[at] { // as the callers do
			lines = append(lines, warning.Error())
			seen[at] = true
		}
	}
	return strings.Join(lines, "\n")
}

// workload returns a template of a kind that selects its Pods and requests a device.
func workload(kind, name, selector, labels, more string) string {
	return `
- apiVersion: apps/v1
  kind: ` + kind + `
  metadata: {name: "` + name + `"}
  spec:
    selector: {matchLabels: ` + selector + `}
    ` + more + `
    template:
      metadata: {labels: ` + labels + `}
      spec: {containers: [{name: c, image: c, ports: [{name: http, containerPort: 80}], resources: {limits: {"{{ RESOURCE_NAME }}": "1"}}}]}
`
}

func service(selector, more string) string {
	return `
- apiVersion: v1
  kind: Service
  metadata: {name: "{{ CONFIGURATION_NAME }}"}
  spec: {selector: ` + selector + `, ` + cmp.Or(more, "ports: [{port: 80}]") + `}
`
}

const (
	all      = `"{{ LABEL_SELECTOR }}"`
	device   = "{{ INSTANCE_NAME }}"
	ofDevice = `akri.sh/instance: '{{ INSTANCE_NAME }}'`
	recreate = `strategy: {type: Recreate}`
	job      = `
- apiVersion: batch/v1
  kind: Job
  metadata: {name: "{{ INSTANCE_NAME }}"}
  spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: c, resources: {limits: {"{{ RESOURCE_NAME }}": "1"}}}]}}}
`
)

func named(service string) string {
	return strings.Replace(service, "CONFIGURATION_NAME", "INSTANCE_NAME", 1)
}

// Objects that get in each other's way are warned of, and what the remedy says is not.
func TestTogether(t *testing.T) {
	one := workload("Deployment", "{{ INSTANCE_NAME }}-a", all, "{}", recreate)
	two := workload("Deployment", "{{ INSTANCE_NAME }}-b", all, "{}", recreate)
	ownOne := workload("Deployment", "{{ INSTANCE_NAME }}-a", `{`+ofDevice+`, component: a}`, "{component: a}", recreate)
	ownTwo := workload("Deployment", "{{ INSTANCE_NAME }}-b", `{`+ofDevice+`, component: b}`, "{component: b}", recreate)
	alike := workload("Deployment", "{{ INSTANCE_NAME }}", "{app: x}", "{app: x}", recreate)
	alikeMended := workload("Deployment", "{{ INSTANCE_NAME }}", "{app: x, "+ofDevice+"}", "{app: x}", recreate)
	const immutable = "; an object that exists needs another name, too, because its selector is immutable"
	const overlap = ", and Kubernetes requires selectors that do not overlap; "
	for name, tc := range map[string]struct {
		capacity  int64
		templates string
		want      []string // the beginnings of the warnings
		mended    string   // without a warning
		enough    int64    // for mended
	}{
		"a surge where another workload has the other slot": {
			capacity: 2, templates: workload("Deployment", "{{ INSTANCE_NAME }}", `{app: a, `+ofDevice+`}`, "{app: a}", "") +
				workload("StatefulSet", "{{ INSTANCE_NAME }}", `{app: b, `+ofDevice+`}`, "{app: b}", ""),
			want: []string{"instanceBrokerResources[0].spec.strategy: an update waits forever, because it starts a new Pod before it stops an " +
				"old one, and there is no slot for the new one (Pods: 1, slots per Pod: 1, slots of other Pods: 1, in total: 2); " + EndOldPodFirst},
			mended: workload("Deployment", "{{ INSTANCE_NAME }}", `{app: a, `+ofDevice+`}`, "{app: a}",
				"strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}") +
				workload("StatefulSet", "{{ INSTANCE_NAME }}", `{app: b, `+ofDevice+`}`, "{app: b}", ""),
		},
		"more Pods than slots": {
			capacity: 1, templates: strings.ReplaceAll(ownOne+ownTwo, recreate, ""),
			want: []string{"instanceBrokerResources[1]: the Pods of this template and of instanceBrokerResources[0] request more slots of a " +
				"device than there are, so some wait forever (slots requested: 2, in total: 1); set spec.capacity to 3 or more"},
			mended: ownOne + strings.ReplaceAll(ownTwo, recreate, ""), enough: 3,
		},
		"two Deployments and a Service with LABEL_SELECTOR": {
			capacity: 2, templates: one + two + named(service(all, "")),
			want: []string{
				"instanceBrokerResources[0].spec.selector.matchLabels: it selects not only its own Pods, but also those of instanceBrokerResources[1]" +
					overlap + `select "{` + ofDevice + `, component: NAME}", and add "component: NAME" to the labels of the Pods that it should select` +
					immutable,
				"instanceBrokerResources[1].spec.selector.matchLabels: ",
				"instanceBrokerResources[2].spec.selector: it selects not only the Pods of instanceBrokerResources[0], " +
					"but also those of instanceBrokerResources[1]; select",
			},
			mended: ownOne + ownTwo + named(service(`{`+ofDevice+`, component: a}`, "")),
		},
		"a Deployment and a Job": {
			capacity: 1, templates: one + job + named(service(all, "")),
			want:   []string{"instanceBrokerResources[2].spec.selector: it selects"},
			mended: ownOne + job + named(service(`{`+ofDevice+`, component: a}`, "")),
		},
		"a Service of the Configuration, and two Deployments": {
			capacity: 2, templates: ownOne + ownTwo + "group:" + service(all, ""),
			want: []string{"configurationBrokerResources[0].spec.selector: it selects not only the Pods of instanceBrokerResources[0], but also " +
				`those of instanceBrokerResources[1]; select "{akri.sh/configuration: '{{ CONFIGURATION_NAME }}', component: NAME}"`},
			mended: ownOne + ownTwo + "group:" + service(`{akri.sh/configuration: '{{ CONFIGURATION_NAME }}', component: a}`, ""),
		},
		"a label that is equal for all devices": {
			capacity: 1, templates: alike + named(service("{app: x}", "")),
			want: []string{
				"instanceBrokerResources[0].spec.selector.matchLabels: it selects not only its own Pods, but also those of other devices" +
					overlap + `add "` + ofDevice + `" to it` + immutable,
				"instanceBrokerResources[1].spec.selector: it selects not only the Pods of instanceBrokerResources[0], " +
					`but also those of other devices; add "` + ofDevice + `" to it`,
			},
			mended: alikeMended + named(service("{app: x, "+ofDevice+"}", "")),
		},
		"both": {
			capacity: 2, templates: alike + strings.Replace(alike, "NAME }}", "NAME }}-b", 1),
			want: []string{
				"instanceBrokerResources[0].spec.selector.matchLabels: it selects not only its own Pods, but also those of " +
					`instanceBrokerResources[1] and of other devices` + overlap + `select "{` + ofDevice + `, component: NAME}"`,
				"instanceBrokerResources[1].spec.selector.matchLabels: ",
			},
			mended: ownOne + ownTwo,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := advised(t, tc.capacity, tc.templates)
			lines := strings.FieldsFunc(got, func(r rune) bool { return r == '\n' })
			ok := len(lines) == len(tc.want)
			for i := range lines {
				ok = ok && strings.HasPrefix(lines[i], tc.want[i])
			}
			if !ok {
				t.Errorf("warned\n%s\nwant\n%s", got, strings.Join(tc.want, "\n"))
			}
			if got := advised(t, cmp.Or(tc.enough, tc.capacity), tc.mended); got != "" {
				t.Errorf("with the remedy, warned\n%s", got)
			}
		})
	}
}

// What works is not warned of.
func TestTogetherIsSilent(t *testing.T) {
	a := func(more string) string {
		return workload("Deployment", "{{ INSTANCE_NAME }}-a", `{`+ofDevice+`, app: a}`, "{app: a, tier: x}", more)
	}
	b := func(more string) string {
		return workload("Deployment", "{{ INSTANCE_NAME }}-b", `{`+ofDevice+`, app: b}`, "{app: b, tier: x}", more)
	}
	when := func(text, condition string) string {
		return strings.Replace(text, `"}`, `", annotations: {akri.sh/when: `+condition+`}}`, 1)
	}
	both := a(recreate) + b(recreate)
	for name, tc := range map[string]struct {
		capacity  int64
		templates string
	}{
		"Recreate":                          {1, workload("Deployment", device, all, "{}", recreate) + named(service(all, ""))},
		"more slots than Pods":              {2, workload("Deployment", device, all, "{}", "")},
		"a slot more than two need":         {3, a("") + b("")},
		"as many slots as Pods":             {2, both},
		"Jobs end":                          {1, a(recreate) + job},
		"no replicas":                       {1, a(recreate) + b("replicas: 0")},
		"more replicas than slots stand by": {1, a("replicas: 2\n    " + recreate)},
		"one of two":                        {1, when(a(recreate), `"{{ SHARED }}"`) + when(b(recreate), `"{{ not SHARED }}"`)},
		"a DaemonSet":                       {1, workload("DaemonSet", device, all, "{}", "")},
		"a StatefulSet":                     {1, workload("StatefulSet", device, all, "{}", "")},
		"a Service for each":                {2, both + named(service(`{`+ofDevice+`, app: a}`, ""))},
		"a Service for both, by a label of theirs": {2, both + named(service(`{`+ofDevice+`, tier: x}`, ""))},
		"a Service for both, without an address":   {2, both + named(service(all, "clusterIP: None"))},
		"a headless Service":                       {1, a(recreate) + named(service(all, "clusterIP: None, ports: [{port: 80}]"))},
		"another name":                             {2, both + named(service(all, "type: ExternalName, externalName: example.com"))},
		"no selector":                              {2, both + named(service("{}", ""))},
		"a Service for all devices":                {1, a(recreate) + "group:" + service(all, "")},
		"by a label of the author's":               {1, a(recreate) + "group:" + service("{tier: x}", "")},
		"a Deployment of the Configuration": {1, a(recreate) + named(service(all, "")) + "group:" +
			workload("Deployment", "wall", "{app: wall}", "{app: wall}", "") + service("{app: wall}", "")},
		"a Service of each device for a Deployment of all": {1, named(service("{app: wall}", "")) + "group:" +
			workload("Deployment", "wall", "{app: wall}", "{app: wall}", "")},
		"a label with the name": {1, workload("Deployment", device, `{app: "{{ INSTANCE_NAME }}-x"}`,
			`{app: "{{ INSTANCE_NAME }}-x"}`, recreate) + named(service(`{app: "{{ INSTANCE_NAME }}-x"}`, ""))},
		"a property, which may be different": {1, workload("Deployment", "{{ INSTANCE_NAME }}", `{id: "{{ INSTANCE_PROPERTIES.ID }}"}`,
			`{id: "{{ INSTANCE_PROPERTIES.ID }}"}`, recreate) +
			named(service(`{id: "{{ INSTANCE_PROPERTIES.ID }}"}`, ""))},
		"a Service for the Pods of all nodes": {2, when(workload("Deployment", device+"-{{ NODE }}", `{`+ofDevice+`, node: "{{ NODE }}"}`,
			`{node: "{{ NODE }}"}`, recreate), `"{{ true }}", akri.sh/for-each: NODES`) + named(service(all, ""))},
		"expressions that are not understood": {2, a(recreate) + strings.Replace(b(recreate), "matchLabels: {"+ofDevice+", app: b}",
			"matchExpressions: [{key: app, operator: Exists}]", 1)},
		"a custom kind": {1, `- {apiVersion: example.com/v1, kind: Clones, metadata: {name: "{{ INSTANCE_NAME }}"}, spec: {template: ` +
			`{metadata: {labels: {app: x}}, spec: {containers: [{name: c, image: c}]}}}}` + named(service("{app: x}", ""))},
		"a wrong type": {1, workload("Deployment", device, all, "{}", "replicas: many")},
	} {
		t.Run(name, func(t *testing.T) {
			if got := advised(t, tc.capacity, tc.templates); got != "" {
				t.Errorf("warned\n%s", got)
			}
		})
	}
}
