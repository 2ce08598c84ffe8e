package helm_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"akri.sh/akri/charts/helm"
)

// everyPod has a value for each key of pods, and what each component then has.
var everyPod = map[string]struct{ values, want string }{
	"env":                       {"[{name: HTTPS_PROXY, value: proxy}]", "- name: HTTPS_PROXY\n          value: proxy\n"},
	"resources":                 {"{limits: {example.com/a: 1}}", "example.com/a: 1\n"},
	"priorityClassName":         {"critical", "priorityClassName: "}, // components have their own
	"runtimeClassName":          {"gvisor", "runtimeClassName: gvisor\n"},
	"nodeSelector":              {"{zone: a}", "nodeSelector:\n        kubernetes.io/os: linux\n        zone: a\n"},
	"tolerations":               {"[{operator: Exists}]", "tolerations:\n      - operator: Exists\n"},
	"affinity":                  {"{nodeAffinity: {}}", "affinity:\n        nodeAffinity: {}\n"},
	"topologySpreadConstraints": {"[{topologyKey: zone}]", "topologyKey: zone\n"},
	"podLabels":                 {"{a: b}", "        a: b\n        app.kubernetes.io/name: "},
	"podAnnotations":            {"{c: d}", "metadata:\n      annotations:\n        c: d\n"},
	"annotations":               {"{e: f}", "metadata:\n  annotations:\n    e: f\n"},
	"podSecurityContext":        {"{fsGroup: 7}", "securityContext:\n        fsGroup: 7\n"},
	"securityContext":           {"{procMount: Default}", "- ALL\n          procMount: Default\n          readOnlyRootFilesystem: true\n"},
	"extraVolumes":              {"[{name: ca, secret: {secretName: ca}}]", "- name: ca\n        secret:\n          secretName: ca\n"},
	"extraVolumeMounts":         {"[{name: ca, mountPath: /ca}]", "- mountPath: /ca\n          name: ca\n"},
	"updateStrategy":            {"{type: OnDelete}", "trategy:\n    "},
	"revisionHistoryLimit":      {"3", "revisionHistoryLimit: 3\n"},
	"dnsPolicy":                 {"Default", "dnsPolicy: Default\n"},
	"dnsConfig":                 {"{nameservers: [192.0.2.1]}", "dnsConfig:\n        nameservers:\n        - 192.0.2.1\n"},
	"hostAliases":               {"[{ip: 192.0.2.2}]", "hostAliases:\n      - ip: 192.0.2.2\n"},
	"livenessProbe":             {"{failureThreshold: 9}", "livenessProbe:\n          failureThreshold: 9\n          httpGet:"},
	"readinessProbe":            {"{failureThreshold: 8}", "readinessProbe:\n          failureThreshold: 8\n          httpGet:"},
}

// TestEveryPod checks that each key of pods reaches the Pods of all components, and that a
// component adds to it.
func TestEveryPod(t *testing.T) {
	var defaults struct{ Pods object }
	if err := yaml.Unmarshal([]byte(chartFile(t, "values.yaml")), &defaults); err != nil {
		t.Fatal(err)
	}
	if tested, keys := slices.Sorted(maps.Keys(everyPod)), slices.Sorted(maps.Keys(defaults.Pods)); !slices.Equal(tested, keys) {
		t.Errorf("tested are\n%v, and pods has\n%v", tested, keys)
	}
	values := everyHandler + "pods:\n"
	for key, test := range everyPod {
		values += "  " + key + ": " + test.values + "\n"
	}
	values += "agent: {env: [{name: GOMEMLIMIT, value: 1GiB}, {name: A, value: b}], tolerations: [{key: own}]}\n"
	count := 0
	for id, o := range render(t, values) {
		if podSpec(o) == nil {
			continue
		}
		count++
		for key, test := range everyPod {
			if !strings.Contains(text(t, o), test.want) {
				t.Errorf("%s: pods.%s: no %q in\n%s", id, key, test.want, text(t, o))
			}
		}
		const limit, own = "name: GOMEMLIMIT\n          valueFrom:\n            resourceFieldRef:", "key: own"
		isAgent, has := strings.HasSuffix(id, "/akri-agent"), func(part string) bool { return strings.Contains(text(t, o), part) }
		if has(own) != isAgent || has(limit) == isAgent {
			t.Errorf("%s: want %q of the agent only, and the limit of the memory of all others:\n%s", id, own, text(t, o))
		}
	}
	if count != 10 {
		t.Errorf("%d components", count)
	}
}

// TestOwnReplacesCommon checks that nothing is in a Pod twice: what a component has under a name replaces what all have.
func TestOwnReplacesCommon(t *testing.T) {
	agent := text(t, render(t, `
pods:
  env: [{name: HTTPS_PROXY, value: common}, {name: NO_PROXY, value: common}]
  extraVolumes: [{name: ca, secret: {secretName: common}}]
  extraVolumeMounts: [{name: ca, mountPath: /ca}]
  tolerations: [{key: common}]
agent:
  env: [{name: HTTPS_PROXY, value: own}]
  extraVolumes: [{name: ca, secret: {secretName: own}}]
  extraVolumeMounts: [{name: ca, mountPath: /ca, readOnly: true}]
  tolerations: [{key: own}]
`)["DaemonSet akri-system/akri-agent"])
	for part, want := range map[string]int{
		"- name: HTTPS_PROXY\n          value: own\n": 1, "name: HTTPS_PROXY": 1, "- name: NO_PROXY\n          value: common\n": 1,
		"secretName: own": 1, "secretName: common": 0, "- mountPath: /ca\n": 1, "key: own": 1, "key: common": 1,
	} {
		if got := strings.Count(agent, part); got != want {
			t.Errorf("%q is there %d times, want %d:\n%s", part, got, want, agent)
		}
	}
}

// TestSubchart renders a chart that depends on this one under a condition, as people do who have
// everything of a site in one chart.
func TestSubchart(t *testing.T) {
	const global = "global: {imageRegistry: mirror.example, imagePullSecrets: [a, {name: b}], other: 1}\n"
	for values, want := range map[string]int{
		global + "akri: {enabled: true, x-anchors: {a: 1}, image: {repositories: {agent: akri-agent}}}": 3,
		global + "akri: {enabled: false}": 0,
		global + "tags: {devices: false}": 0,
		global + "tags: {devices: true}":  3,
	} {
		akri, err := helm.Load("v1.2.3")
		if err != nil {
			t.Fatal(err)
		}
		site := &chart.Chart{Metadata: &chart.Metadata{
			APIVersion: "v2", Name: "site", Version: "1.0.0",
			Dependencies: []*chart.Dependency{{Name: "akri", Version: "1.2.3", Condition: "akri.enabled", Tags: []string{"devices"}}},
		}}
		site.AddDependency(akri)
		r := release()
		r.Chart = site
		manifest, err := r.Render(parse(t, values))
		if err != nil {
			t.Errorf("%s: %v", values, err)
			continue
		}
		count := 0
		for id, o := range objects(t, manifest) {
			spec := podSpec(o)
			if spec == nil {
				continue
			}
			count++
			containers := spec["containers"].([]any)
			image, agent := containers[0].(object)["image"], strings.Contains(values, "akri-agent") && strings.HasSuffix(id, "/akri-agent")
			if image != "mirror.example/controller:v1.2.3" && image != "mirror.example/agent:v1.2.3" && !agent ||
				agent && image != "mirror.example/akri-agent:v1.2.3" {
				t.Errorf("%s: the image is %v", id, image)
			}
			if secrets := text(t, spec["imagePullSecrets"]); secrets != "- name: a\n- name: b\n" {
				t.Errorf("%s: the pull secrets are %s", id, secrets)
			}
		}
		if count != want {
			t.Errorf("%s: %d components, want %d", values, count, want)
		}
	}
}

// TestServiceAccounts checks that ServiceAccounts of an operator's own get the permissions, and
// that the policies know them.
func TestServiceAccounts(t *testing.T) {
	const values = "{controller: {serviceAccount: {create: false, name: mine}}, " +
		"agent: {serviceAccount: {name: ours, annotations: {role: devices}}}}"
	all := render(t, values)
	for id, o := range all {
		if strings.Contains(text(t, o), ":akri-agent'") || strings.Contains(text(t, o), ":akri-controller'") {
			t.Errorf("%s knows another account:\n%s", id, text(t, o))
		}
		subjects, _, _ := unstructured.NestedSlice(o, "subjects")
		for _, s := range subjects {
			if name := s.(object)["name"]; name != "mine" && name != "ours" && name != "akri-webhook" {
				t.Errorf("%s is bound to %v", id, name)
			}
		}
	}
	if all["ServiceAccount akri-system/mine"] != nil || all["ServiceAccount akri-system/akri-controller"] != nil {
		t.Error("the controller's ServiceAccount was to be there already")
	}
	if o := all["ServiceAccount akri-system/ours"]; o == nil || !strings.Contains(text(t, o), "role: devices") {
		t.Errorf("the agent's ServiceAccount: %v", o)
	}
	for id, want := range map[string]string{"Deployment akri-system/akri-controller": "mine", "DaemonSet akri-system/akri-agent": "ours"} {
		if got := podSpec(all[id])["serviceAccountName"]; got != want {
			t.Errorf("%s runs as %v, want %s", id, got, want)
		}
	}
}
