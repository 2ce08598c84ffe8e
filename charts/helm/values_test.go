package helm_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestNoWildcards reads every rendered rule.
func TestNoWildcards(t *testing.T) {
	rules := 0
	for id, o := range render(t, read(t, "testdata/everything.values.yaml")) {
		rules += checkRules(t, id, o)
	}
	hooks, err := release().Hooks(parse(t, read(t, "testdata/everything.values.yaml")))
	if err != nil {
		t.Fatal(err)
	}
	for _, hook := range hooks {
		for id, o := range objects(t, hook.Manifest) {
			rules += checkRules(t, id, o)
		}
	}
	if rules < 25 {
		t.Errorf("only %d rules were read", rules)
	}
}

// checkRules reports wildcards in the rules of an object, and Secrets that are not named,
// and returns the number of rules.
func checkRules(t *testing.T, id string, o object) int {
	t.Helper()
	if kind := o["kind"]; kind != "ClusterRole" && kind != "Role" {
		return 0
	}
	rules, _ := o["rules"].([]any)
	for _, r := range rules {
		rule := r.(object)
		for _, key := range []string{"apiGroups", "resources", "verbs", "nonResourceURLs"} {
			list, _ := rule[key].([]any)
			if slices.ContainsFunc(list, func(v any) bool { return strings.Contains(fmt.Sprint(v), "*") }) {
				t.Errorf("%s: a wildcard in %v", id, rule)
			}
		}
		resources, _ := rule["resources"].([]any)
		if slices.Contains(resources, any("secrets")) && rule["resourceNames"] == nil {
			t.Errorf("%s: all Secrets: %v", id, rule)
		}
	}
	return len(rules)
}

// TestStable renders twice, and checks that no hook runs an image of others, or while a
// release is installed or upgraded.
func TestStable(t *testing.T) {
	values := read(t, "testdata/everything.values.yaml")
	first, err := release().Render(parse(t, values))
	if err != nil {
		t.Fatal(err)
	}
	second, err := release().Render(parse(t, values))
	if err != nil || first != second {
		t.Error("the same values render two different texts", err)
	}
	hooks, err := release().Hooks(parse(t, values))
	if err != nil || len(hooks) == 0 {
		t.Fatal(hooks, err)
	}
	for _, hook := range hooks {
		if len(hook.Events) != 1 || !slices.Contains([]string{"test", "pre-delete"}, hook.Events[0].String()) {
			t.Errorf("%s runs at %v", hook.Name, hook.Events)
		}
		for line := range strings.SplitSeq(hook.Manifest, "\n") {
			if strings.Contains(line, "image: ") && !strings.Contains(line, "image: registry.example.com/akri/controller:v1.2.3") {
				t.Errorf("%s: %s", hook.Name, line)
			}
		}
	}
}

// TestHooks checks which values have hooks besides the test: those with Configurations,
// also with keys of Akri's chart. Without a cluster, no Configuration is left out, so no
// rollback can lose one.
func TestHooks(t *testing.T) {
	const akri = "onvif: {configuration: {enabled: true}}"
	for values, want := range map[string][]string{
		"":   nil,
		akri: {"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Job"},
		"{hooks: {enabled: false}, " + akri + "}": nil,
		"{rbac: {enabled: false}, " + akri + "}":  {"ServiceAccount", "Job"},
	} {
		hooks, err := release().Hooks(parse(t, values))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, hook := range hooks {
			if hook.Events[0].String() == "test" {
				continue
			}
			got = append(got, hook.Kind)
			if hook.Name != "akri-pre-delete" {
				t.Errorf("%s: the hook %s", values, hook.Name)
			}
			if hook.Kind == "Job" && !strings.Contains(hook.Manifest, "--configurations=akri-system/akri-onvif\n") {
				t.Errorf("%s: the Job does not name the Configuration:\n%s", values, hook.Manifest)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: the hooks are %q, want %q", values, got, want)
		}
	}
}

// TestTypos checks that keys that do not exist are refused, at every level.
func TestTypos(t *testing.T) {
	for values, want := range map[string]string{
		"contoller: {}":                                      "contoller",
		"controller: {replica: 2}":                           "replica",
		"controller: {replicas: two}":                        "controller/replicas",
		"controller: {resources: {limit: {memory: 1Gi}}}":    "limit",
		"handlers: {udv: {enabled: true}}":                   "udv",
		"handlers: {udev: {enable: true}}":                   "enable",
		"handlers: {udev: {kind: Deployment}}":               "handlers/udev/kind",
		"handlers: {onvif: {kind: ReplicaSet}}":              "handlers/onvif/kind",
		"handlers: {onvif: {udevDir: /run/udev}}":            "udevDir",
		"handlers: {mqtt: {enabled: 'yes'}}":                 "handlers/mqtt/enabled",
		"image: {digests: {agnt: x}}":                        "agnt",
		"image: {pullPolicy: always}":                        "image/pullPolicy",
		"certificates: {provider: vault}":                    "certificates/provider",
		"metrics: {podMonitor: {enable: true}}":              "enable",
		"udev: {typo: {enabled: true}}":                      "typo",
		"udev: {configuration: {discoveryDetails: {x: 1}}}":  "x",
		"onvif: {configuration: {brokerPod: {iamge: {}}}}":   "iamge",
		"agent: {host: {kubelet: /x}}":                       "kubelet",
		"configurations: [{name: a}]":                        "spec",
		"configurations: [{name: a, spec: {}, capacity: 1}]": "capacity",
		"webhook: {failurePolicy: fail}":                     "webhook/failurePolicy",
		"podMonitor: {enabled: true}":                        "podMonitor",
		"agent: {embeddedHandlers: udev}":                    "agent/embeddedHandlers",
		"agent: {embeddedHandlers: [mqtt]}":                  "use debugEcho, onvif, opcua, udev",
		"{agent: {embeddedHandlers: [onvif], networkHandlers: [10.96.0.0/12]}, " +
			"handlers: {opcua: {enabled: true, kind: Deployment}}}": "run onvif with handlers.onvif.enabled",
	} {
		_, err := release().Render(parse(t, values))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", values, err, want)
		}
	}
}

// TestOptions checks what options change.
func TestOptions(t *testing.T) {
	const agent = "DaemonSet akri-system/akri-agent"
	everything := read(t, "testdata/everything.values.yaml")
	const embedded = "{agent: {embeddedHandlers: [udev, debugEcho], handlersDir: /handlers}, " +
		"handlers: {udev: {enabled: true, udevDir: /host/udev}, debugEcho: {shared: false}}}"
	const onvif = "agent: {embeddedHandlers: [onvif, opcua]}"
	rendered := map[string]map[string]object{} // by values
	for name, test := range map[string]struct {
		values, id string
		want, not  string
	}{
		"registry, tag and digest": {values: everything, id: agent, want: "image: registry.example.com/akri/agent:v1.2.3@sha256:0123"},
		"a Deployment's address": {
			values: everything, id: agent,
			want: "siteOnvif=akri-onvif-discovery.akri-system.svc:10000+shared",
		},
		"ranges of addresses": {values: everything, id: agent, want: "--allow-network-handlers=10.96.0.0/12,10.0.0.0/8"},
		"privileged":          {values: everything, id: agent, want: "privileged: true", not: "allowPrivilegeEscalation"},
		"a Deployment's user": {
			values: everything, id: "Deployment akri-system/akri-onvif-discovery",
			want: "runAsNonRoot: true", not: "hostPath",
		},
		"labels": {values: everything, id: "ClusterRole /akri-controller", want: "team: edge"},
		"spread of one component": {
			values: everything, id: "Deployment akri-system/akri-controller",
			want: "whenUnsatisfiable: DoNotSchedule",
		},
		"egress":    {values: everything, id: "NetworkPolicy akri-system/akri-mqtt-discovery", want: "- Egress"},
		"no egress": {values: everything, id: "NetworkPolicy akri-system/akri-agent", not: "- Egress"},
		"only agents call": {
			values: everything, id: "NetworkPolicy akri-system/akri-opcua-discovery",
			want: "app.kubernetes.io/name: akri-agent",
		},
		"a dashboard":     {values: everything, id: "ConfigMap akri-system/akri-dashboard-fleet", want: "grafana_dashboard"},
		"an extra object": {values: everything, id: "ConfigMap /extra-akri", want: "extra-akri"},
		"further kinds":   {values: everything, id: "ClusterRole /akri-controller-extra", want: "kubevirt.io"},
		"keep": {
			values: "", id: "CustomResourceDefinition /instances.akri.sh",
			want: "helm.sh/resource-policy: keep",
		},
		"do not keep": {
			values: "crds: {keep: false}", id: "CustomResourceDefinition /instances.akri.sh",
			not: "resource-policy",
		},
		"no handler in the agent": {values: "", id: agent, want: "containerPort: 8080", not: "--embedded-handlers"},
		"no other mounts":         {values: "", id: agent, want: "mountPath: /var/lib/akri", not: "/run/udev"},
		"the network of the Pod":  {values: "", id: agent, not: "hostNetwork"},
		"handlers in the agent": {
			values: embedded, id: agent, want: "--embedded-handlers=udev,debugEcho", not: "hostNetwork",
		},
		"udev's database in the agent": {
			values: embedded, id: agent, want: "mountPath: /run/udev\n          name: udev\n          readOnly: true",
		},
		"udev's directory on the node": {values: embedded, id: agent, want: "path: /host/udev"},
		"debugEcho in the agent":       {values: embedded, id: agent, want: "name: DEBUG_ECHO_INSTANCES_SHARED\n          value: \"false\""},
		"debugEcho's availability":     {values: embedded, id: agent, want: "path: /handlers/debug-echo"},
		"a DaemonSet at the same time": {values: embedded, id: "DaemonSet akri-system/akri-udev-discovery", want: "path: /host/udev"},
		"onvif in the agent":           {values: onvif, id: agent, want: "hostNetwork: true"},
		"onvif in the agent, its DNS":  {values: onvif, id: agent, want: "dnsPolicy: ClusterFirstWithHostNet", not: "/run/udev"},
		"onvif in the agent, its port": {values: onvif, id: agent, want: "--metrics-bind-address=:9470", not: "8080"},
		"cert-manager's CA": {
			values: "certificates: {provider: cert-manager}", id: "ValidatingWebhookConfiguration /akri-configurations",
			want: "cert-manager.io/inject-ca-from: akri-system/akri-webhook",
		},
		"cert-manager's certificate": {
			values: "certificates: {provider: cert-manager}", id: "Deployment akri-system/akri-webhook",
			want: "secretName: akri-webhook-tls", not: "--cert-secret",
		},
		"alerts": {
			values: "metrics: {prometheusRule: {enabled: true}}", id: "PrometheusRule akri-system/akri",
			want: "AkriControllerDown",
		},
		"the release": {
			values: "metrics: {podMonitor: {enabled: true}, labels: {release: prom}}", id: "PodMonitor akri-system/akri",
			want: "release: prom",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if rendered[test.values] == nil {
				rendered[test.values] = render(t, test.values)
			}
			o := rendered[test.values][test.id]
			if o == nil {
				t.Fatalf("no %s", test.id)
			}
			if got := text(t, o); !strings.Contains(got, test.want) || test.not != "" && strings.Contains(got, test.not) {
				t.Errorf("want %q, not %q:\n%s", test.want, test.not, got)
			}
		})
	}
}

func TestNotes(t *testing.T) {
	for values, want := range map[string]string{
		"":                                        "Discovery handlers: none.",
		"handlers: {udev: {enabled: true}}":       "Discovery handlers: udev.",
		"agent: {embeddedHandlers: [udev]}":       "Discovery handlers: udev (in the agents).",
		"webhook: {enabled: false}":               "The webhook is off",
		"crds: {keep: false}":                     "also all Configurations",
		"onvif: {configuration: {enabled: true}}": "get akric akri-onvif",
	} {
		notes, err := release().Notes(parse(t, values))
		if err != nil || !strings.Contains(notes, want) {
			t.Errorf("%s: no %q in\n%s\n%v", values, want, notes, err)
		}
	}
}
