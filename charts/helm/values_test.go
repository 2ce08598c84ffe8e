package helm_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	"sigs.k8s.io/yaml"
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

// TestRestricted reads every rendered Pod: all select nodes with Linux and have the seccomp
// profile of the container runtime, and none has capabilities.
func TestRestricted(t *testing.T) {
	values := parse(t, read(t, "testdata/everything.values.yaml"))
	maps.Copy(values, parse(t, read(t, "testdata/akri/custom.values.yaml")))
	manifest, err := release().Render(values)
	if err != nil {
		t.Fatal(err)
	}
	all := objects(t, manifest)
	hooks, err := release().Hooks(values)
	if err != nil {
		t.Fatal(err)
	}
	for _, hook := range hooks {
		maps.Copy(all, objects(t, hook.Manifest))
	}
	count := 0
	for id, o := range all {
		spec := podSpec(o)
		if spec == nil {
			continue
		}
		count++
		if selector, _ := spec["nodeSelector"].(object); selector["kubernetes.io/os"] != "linux" {
			t.Errorf("%s may run on nodes that do not have Linux: %v", id, selector)
		}
		context, _ := spec["securityContext"].(object)
		if !reflect.DeepEqual(context["seccompProfile"], object{"type": "RuntimeDefault"}) {
			t.Errorf("%s has the security context %v", id, context)
		}
		for _, c := range spec["containers"].([]any) {
			context, _ := c.(object)["securityContext"].(object)
			if !reflect.DeepEqual(context["capabilities"], object{"drop": []any{"ALL"}}) ||
				context["allowPrivilegeEscalation"] != false && context["privileged"] != true {
				t.Errorf("%s: a container has the security context %v", id, context)
			}
		}
	}
	if count != 13 {
		t.Errorf("%d Pods", count)
	}
}

// podSpec returns the spec of the Pods that an object is or creates; nil if there are none.
func podSpec(o object) object {
	spec, _ := o["spec"].(object)
	if o["kind"] == "Pod" {
		return spec
	}
	template, _ := spec["template"].(object)
	pod, _ := template["spec"].(object)
	return pod
}

// TestStable renders twice, and checks that no hook runs an image of others or leaves anything,
// because hooks are no part of the release, and that without a cluster, as in Argo CD, none runs
// while a release is installed or upgraded.
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
		// The Pod of a test that has failed goes as well. The Job of another hook says why it has.
		policies := []releasev1.HookDeletePolicy{releasev1.HookSucceeded}
		if hook.Kind == "Pod" {
			policies = append(policies, releasev1.HookFailed)
		}
		for _, policy := range policies {
			if !slices.Contains(hook.DeletePolicies, policy) {
				t.Errorf("%s %s stays: its policies are %v, want %s", hook.Kind, hook.Name, hook.DeletePolicies, policy)
			}
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

// TestOnlyConfigurations checks that a release without parts of Akri has only what its values
// list, and that one with nothing but the definitions still has them.
func TestOnlyConfigurations(t *testing.T) {
	const off = "{controller: {enabled: false}, webhook: {enabled: false}, agent: {enabled: false}"
	const cameras = ", onvif: {configuration: {enabled: true, name: cameras}}"
	for values, want := range map[string][]string{
		off + cameras + "}": {"Configuration akri-system/cameras"},
		off + ", extraObjects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}": {"ConfigMap /a"},
	} {
		if got := keysOf(render(t, values)); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", values, got, want)
		}
		notes, err := release().Notes(parse(t, values))
		if hooks, _ := release().Hooks(parse(t, values)); err != nil || len(hooks) > 0 || strings.Contains(notes, "delete crd") {
			t.Errorf("%s: %d hooks, %v, and the notes\n%s", values, len(hooks), err, notes)
		}
	}
	for _, values := range []string{off + "}", off + ", crds: {keep: false}" + cameras + "}"} {
		all := render(t, values)
		for _, name := range crdNames {
			if all["CustomResourceDefinition /"+name] == nil || all["ValidatingAdmissionPolicy /akri-authors"] == nil {
				t.Errorf("%s: %s or its policies are missing", values, name)
			}
		}
	}
}

// TestTypos checks that keys that do not exist are refused, at every level.
func TestTypos(t *testing.T) {
	for values, want := range map[string]string{
		"contoller: {}":                                                                       "contoller",
		"controller: {replica: 2}":                                                            "replica",
		"controller: {replicas: two}":                                                         "controller/replicas",
		"controller: {resources: {limit: {memory: 1Gi}}}":                                     "limit",
		"handlers: {udv: {enabled: true}}":                                                    "udv",
		"handlers: {udev: {resources: {memoryLimit: 1Gi}}}":                                   "memoryLimit",
		"webhook: {resources: {memoryLimit: 1Gi}}":                                            "memoryLimit",
		"custom: {discovery: {resources: {limits: {cpu: 1}}}}":                                "limits",
		"networkPolicy: {egress: {mqtttt: []}}":                                               "mqtttt",
		"networkPolicy: {egress: {controller: {}}}":                                           "networkPolicy/egress/controller",
		"handlers: {udev: {enabled: true, replicas: 2}}":                                      "only a Deployment has replicas",
		"handlers: {udev: null}":                                                              "missing property 'udev'",
		"webhook: {podDisruptionBudget: null}":                                                "missing property 'podDisruptionBudget'",
		"image: {digests: {agent: latest}}":                                                   "image/digests/agent",
		"handlers: {udev: {enable: true}}":                                                    "enable",
		"handlers: {udev: {kind: Deployment}}":                                                "handlers/udev/kind",
		"handlers: {onvif: {kind: ReplicaSet}}":                                               "handlers/onvif/kind",
		"handlers: {onvif: {udevDir: /run/udev}}":                                             "udevDir",
		"handlers: {mqtt: {enabled: 'yes'}}":                                                  "handlers/mqtt/enabled",
		"image: {digests: {agnt: x}}":                                                         "agnt",
		"image: {pullPolicy: always}":                                                         "image/pullPolicy",
		"certificates: {provider: vault}":                                                     "certificates/provider",
		"metrics: {podMonitor: {enable: true}}":                                               "enable",
		"udev: {typo: {enabled: true}}":                                                       "udev.typo: not keys",
		"udev: {configuration: {discoveryDetails: {x: 1}}}":                                   "udev.configuration.discoveryDetails.x",
		"onvif: {configuration: {brokerPod: {iamge: {a: b}}}}":                                "onvif.configuration.brokerPod.iamge",
		"agent: {host: {kubelet: /x}}":                                                        "agent.host.kubelet",
		"udev: 1":                                                                             "at '/udev'",
		"pods: {nodeSelector: 1}":                                                             "pods/nodeSelector",
		"pods: {nodeselector: {}}":                                                            "nodeselector",
		"handlers: {http: {dnspolicy: Default}}":                                              "dnspolicy",
		"handlers: {http: {hostAliases: {}}}":                                                 "handlers/http/hostAliases",
		"configurations: [{name: a}]":                                                         "spec",
		"configurations: [{name: a, spec: {}, capacity: 1}]":                                  "capacity",
		"configurations: [{name: a, spec: {discoveryHandler: {name: udev}, capcity: 2}}]":     "capcity",
		"configurations: [{name: a, spec: {discoveryHandler: {name: udev}, capacity: 0}}]":    "configurations/0/spec/capacity",
		"configurations: [{name: a, spec: {discoveryHandler: {name: udev, details: ''}}}]":    "details",
		"configurations: [{name: a, spec: {capacity: 2}}]":                                    "discoveryHandler",
		"configurations: [{name: A.b, spec: {discoveryHandler: {name: udev}}}]":               "configurations/0/name",
		"configurations: [{name: a, namespace: A_b, spec: {discoveryHandler: {name: udev}}}]": "configurations/0/namespace",
		"configurations: [{name: a, labels: {a: 1}, spec: {discoveryHandler: {name: udev}}}]": "configurations/0/labels/a",
		"configurations: [{name: a, spec: {discoveryHandler: {name: udev}, instanceBrokerResources: [{metdata: {}}]}}]": "'metadata'",
		"webhook: {failurePolicy: fail}":                                            "webhook/failurePolicy",
		"podMonitor: {enabled: true}":                                               "podMonitor",
		"agent: {embeddedHandlers: udev}":                                           "agent/embeddedHandlers",
		"agent: {embeddedHandlers: [mqtt]}":                                         "use debugEcho, onvif, opcua, udev",
		"agent: {args: ['--metrics-bind-address=:9090']}":                           "agent.args: use agent.metricsPort and metrics.enabled",
		"agent: {args: ['--health-probe-bind-address=:9090']}":                      "agent.args: use agent.probesPort",
		"agent: {metricsPort: 8081}":                                                "agent.metricsPort: the program uses port 8081",
		"handlers: {mdns: {enabled: true, metricsPort: 9482}}":                      "handlers.mdns.metricsPort: the program uses port 9482",
		"handlers: {udev: {enabled: true, args: ['--metrics-bind-address=:9090']}}": "handlers.udev.args: use handlers.udev.metricsPort",
		"controller: {metricsPort: 8081}":                                           "controller.metricsPort: the program uses port 8081",
		"webhook: {metricsPort: 9443}":                                              "webhook.metricsPort: the program uses port 9443",
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
	const controller, webhook = "Deployment akri-system/akri-controller", "Deployment akri-system/akri-webhook"
	everything := read(t, "testdata/everything.values.yaml")
	const embedded = "{agent: {embeddedHandlers: [udev, debugEcho], handlersDir: /handlers}, " +
		"handlers: {udev: {enabled: true, udevDir: /host/udev}, debugEcho: {shared: false}}}"
	const foreign = "--allow-cross-namespace-properties"
	const onvif = "agent: {embeddedHandlers: [onvif, opcua]}"
	const ports = "{agent: {metricsPort: 9090}, controller: {metricsPort: 9091}, webhook: {metricsPort: 9092}}"
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
		"a Deployment's callers": {
			values: everything, id: "NetworkPolicy akri-system/akri-onvif-discovery",
			want: "app.kubernetes.io/name: akri-agent",
		},
		"a Deployment on the host": {
			values: "{agent: {networkHandlers: [10.96.0.0/12]}, handlers: {mdns: {enabled: true, kind: Deployment, hostNetwork: true}}}",
			id:     "Deployment akri-system/akri-mdns-discovery", want: "hostNetwork: true",
		},
		"multicast": {
			values: "handlers: {mdns: {enabled: true}}", id: "DaemonSet akri-system/akri-mdns-discovery",
			want: "hostNetwork: true",
		},
		"labels": {values: everything, id: "ClusterRole /akri-controller", want: "team: edge"},
		"spread of one component": {
			values: everything, id: controller,
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
		"readers":         {values: "", id: "ClusterRole /akri-view", want: `aggregate-to-view: "true"`},
		"no readers": {
			values: "rbac: {aggregateClusterRoles: {view: false}}", id: "ClusterRole /akri-view", want: `aggregate-to-view: "false"`,
		},
		"authors by hand": {values: "", id: "ClusterRole /akri-edit", want: `aggregate-to-edit: "false"`},
		"all editors": {
			values: "rbac: {aggregateClusterRoles: {edit: true}}", id: "ClusterRole /akri-edit", want: `aggregate-to-edit: "true"`,
		},
		"keep": {
			values: "", id: "CustomResourceDefinition /instances.akri.sh",
			want: "helm.sh/resource-policy: keep",
		},
		"do not keep": {
			values: "crds: {keep: false}", id: "CustomResourceDefinition /instances.akri.sh",
			not: "resource-policy",
		},
		"other namespaces, agents":         {values: "agent: {crossNamespaceProperties: true}", id: agent, want: foreign},
		"other namespaces, webhook":        {values: "agent: {crossNamespaceProperties: true}", id: webhook, want: foreign},
		"other namespaces, not by default": {values: "", id: agent, want: "--metrics", not: foreign},
		"nor by the webhook":               {values: "", id: webhook, want: "--metrics", not: foreign},
		"no handler in the agent":          {values: "", id: agent, want: "containerPort: 8080", not: "--embedded-handlers"},
		"no other mounts":                  {values: "", id: agent, want: "mountPath: /var/lib/akri", not: "/run/udev"},
		"the network of the Pod":           {values: "", id: agent, not: "hostNetwork"},
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
		"onvif in the agent, its port": {values: onvif, id: agent, want: "--metrics-bind-address=127.0.0.1:9470", not: "8080"},
		"onvif in the agent, its probes": {
			values: onvif, id: agent, want: "--health-probe-bind-address=:9480\n        env", not: "8081",
		},
		"onvif in the agent, another port": {
			values: "agent: {embeddedHandlers: [onvif], metricsPort: 9090}", id: agent,
			want: "--metrics-bind-address=127.0.0.1:9090", not: "9470",
		},
		"the agents' port":         {values: ports, id: agent, want: "containerPort: 9090\n          name: metrics", not: "8080"},
		"the agents' address":      {values: ports, id: agent, want: "--metrics-bind-address=127.0.0.1:9090"},
		"the controller's port":    {values: ports, id: controller, want: "containerPort: 9091\n          name: metrics", not: "8080"},
		"the controller's address": {values: ports, id: controller, want: "--metrics-bind-address=127.0.0.1:9091"},
		"the webhook's port":       {values: ports, id: webhook, want: "containerPort: 9092\n          name: metrics", not: "8080"},
		"the webhook's address":    {values: ports, id: webhook, want: "--metrics-bind-address=127.0.0.1:9092"},
		"cert-manager's CA": {
			values: "certificates: {provider: cert-manager}", id: "ValidatingWebhookConfiguration /akri-configurations",
			want: "cert-manager.io/inject-ca-from: akri-system/akri-webhook",
		},
		"cert-manager's certificate": {
			values: "certificates: {provider: cert-manager}", id: webhook,
			want: "secretName: akri-webhook-tls", not: "--cert-secret",
		},
		"nodes":           {values: everything, id: controller, want: "kubernetes.io/os: linux\n        zone: a"},
		"nodes of any OS": {values: "pods: {nodeSelector: {kubernetes.io/os: null}}", id: agent, not: "nodeSelector"},
		"a quota for critical Pods": {
			values: "{resourceQuota: {enabled: true}, agent: {priorityClassName: edge}}",
			id:     "ResourceQuota akri-system/akri-critical-pods", want: "values:\n      - system-cluster-critical\n", not: "node-critical",
		},
		"a drain that deletes no data": {values: "webhook: {replicas: 2}", id: webhook, not: "emptyDir"},
		"a drain with one replica": {
			values: "webhook: {replicas: 1}", id: "PodDisruptionBudget akri-system/akri-webhook",
			want: "maxUnavailable: 1", not: "minAvailable",
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

// TestCheck reads what helm test checks.
func TestCheck(t *testing.T) {
	for values, want := range map[string]string{
		"":                                       "--debug-echo=false",
		"handlers: {debugEcho: {enabled: true}}": "--debug-echo=true",
		"handlers: {debugEcho: {enabled: true, name: echo}}":     "--debug-echo=false",
		"agent: {embeddedHandlers: [debugEcho]}":                 "--debug-echo=true",
		"agent: {embeddedHandlers: [debugEcho], enabled: false}": "--debug-echo=false",
		"webhook: {enabled: false}":                              "--webhook=false",
		"debugEcho: {discovery: {enabled: true}}":                "--debug-echo=true",
	} {
		hooks, err := release().Hooks(parse(t, values))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(hooks, func(hook *releasev1.Hook) bool { return strings.Contains(hook.Manifest, want+"\n") }) {
			t.Errorf("%s: no hook has %s", values, want)
		}
	}
}

// TestCheckMayUseTheHandler checks that helm test brings the permission to use debugEcho, which
// the webhook may require.
func TestCheckMayUseTheHandler(t *testing.T) {
	type reference struct{ Kind, Name, Namespace string }
	hooks, err := release().Hooks(parse(t, "webhook: {args: [--authorize-discovery-handlers]}"))
	if err != nil {
		t.Fatal(err)
	}
	var may, bound bool
	for _, hook := range hooks {
		var o struct {
			Kind     string
			Metadata struct{ Name, Namespace string }
			Rules    []struct{ APIGroups, Resources, ResourceNames, Verbs []string }
			RoleRef  reference
			Subjects []reference
			Spec     struct{ ServiceAccountName string }
		}
		if err := yaml.Unmarshal([]byte(hook.Manifest), &o); err != nil {
			t.Fatal(err)
		}
		if o.Metadata.Name != "akri-check" || o.Metadata.Namespace != "akri-system" {
			continue
		}
		switch o.Kind {
		case "Role":
			may = slices.ContainsFunc(o.Rules, func(rule struct{ APIGroups, Resources, ResourceNames, Verbs []string }) bool {
				return slices.Equal(rule.APIGroups, []string{"akri.sh"}) && slices.Equal(rule.Resources, []string{"discoveryhandlers"}) &&
					slices.Equal(rule.ResourceNames, []string{"debugEcho"}) && slices.Equal(rule.Verbs, []string{"use"})
			})
		case "RoleBinding":
			bound = o.RoleRef.Kind == "Role" && o.RoleRef.Name == "akri-check" &&
				slices.Contains(o.Subjects, reference{"ServiceAccount", "akri-check", "akri-system"})
		case "Pod":
			if o.Spec.ServiceAccountName != "akri-check" {
				t.Errorf("the Pod's ServiceAccount is %q", o.Spec.ServiceAccountName)
			}
		}
	}
	if !may || !bound {
		t.Errorf("a Role permits to use debugEcho: %v; it is bound to the Pod's ServiceAccount: %v", may, bound)
	}
}
