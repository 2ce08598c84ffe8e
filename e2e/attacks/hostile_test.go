package attacks

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// generator makes hostile Configurations. The same seed gives the same ones.
type generator struct {
	*rand.Rand
	// namespaces and names are those of objects that exist.
	namespaces, names []string
	// own is the author's namespace.
	own string
}

// one returns one of several values.
func (g *generator) one(values ...string) string { return values[g.IntN(len(values))] }

// chance reports true in so many percent of the calls.
func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func (g *generator) apiVersion() string {
	if g.chance(50) {
		return "v1"
	}
	return g.one("/v1", "v1/", "//v1", " v1", "v1 ", "V1", "v1alpha1", "core/v1", "apps/v1", "apps/v1/", "batch/v1",
		"rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io./v1", "akri.sh/v0", "akri.sh/v0/x", "apiextensions.k8s.io/v1",
		"admissionregistration.k8s.io/v1", "certificates.k8s.io/v1", "authentication.k8s.io/v1", "authorization.k8s.io/v1",
		"networking.k8s.io/v1", "policy/v1", "coordination.k8s.io/v1", "events.k8s.io/v1", "storage.k8s.io/v1", "node.k8s.io/v1",
		"apiregistration.k8s.io/v1", "scheduling.k8s.io/v1", "resource.k8s.io/v1", "g.example.com/v1", "{{ \"v1\" }}", "", "v1\n", "..", "v1?x=y")
}

func (g *generator) kind() string {
	if g.chance(50) {
		return "ConfigMap"
	}
	return g.one("Pod", "Pod", "Secret", "Secret", "Service", "ServiceAccount", "Role", "RoleBinding",
		"ClusterRole", "ClusterRoleBinding", "Namespace", "Node", "Deployment", "DaemonSet", "Job", "CronJob", "Instance", "Configuration",
		"PersistentVolumeClaim", "PersistentVolume", "NetworkPolicy", "Ingress", "Event", "Lease", "Binding", "Eviction", "TokenRequest",
		"CertificateSigningRequest", "CustomResourceDefinition", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicyBinding",
		"APIService", "PodDisruptionBudget", "PriorityClass", "List", "ConfigMapList", "Status", "Scale", "DeleteOptions", "configmap",
		"configmaps", "pods", "POD", "Pod/exec", "Pod ", "{{ \"Pod\" }}", "SelfSubjectAccessReview", "ResourceQuota", "LimitRange", "Endpoints")
}

func (g *generator) name() string {
	return g.one(g.one(g.names...), "{{INSTANCE_NAME}}", "{{INSTANCE_NAME}}-x", "{{INSTANCE_PROPERTIES.DEBUG_ECHO_DESCRIPTION}}",
		"{{CONFIGURATION_NAME}}", "../"+g.one(g.names...), "x/status", "x?dryRun=None", strings.Repeat("a", 300), "X", "",
		`{{ range INSTANCES }}{{ .name }}{{ end }}`, `{{ get INSTANCE_PROPERTIES "NAME" | default "x" }}`, "kube-root-ca.crt", "default")
}

// expression returns the text of a field.
func (g *generator) expression() string {
	return g.one("v", "{{ toJson INSTANCES }}", "{{ toJson INSTANCE_PROPERTIES }}", `{{ repeat 100000 "ab" }}`,
		"{{ range until 1000 }}{{ range until 1000 }}x{{ end }}{{ end }}", `{{ regexReplaceAll "(a|aa)+b" (repeat 9999 "a") "x" }}`,
		"{{ INSTANCE_PROPERTIES }}", "{{ LABEL_SELECTOR }}", "{{ NODES }}", "{{ fail `\n\x1b[2J` }}", "{{ index NODES 99 }}", "{{ $x := . }}",
		"{{ INSTANCE.properties }}", `{{ b64dec "////" }}`, strings.Repeat("{{ ", 200), strings.Repeat("(", 5000),
		`{{ printf "%99999999d" 1 }}`, `{{ dict "a" (dict "b" (list 1 2)) }}`, `{{ merge (dict) INSTANCE_PROPERTIES }}`, "\x00", "{{ nil }}")
}

func (g *generator) namespace() string {
	return g.one(g.own, g.one(g.namespaces...), "akri-system", "kube-system", "default", "{{NAMESPACE}}", "../x", "", "KUBE")
}

// metadata returns a template's metadata.
func (g *generator) metadata() map[string]any {
	m := map[string]any{"name": g.name()}
	extras := map[string]func() any{
		"namespace": func() any { return g.namespace() },
		"labels": func() any {
			return map[string]any{g.one("akri.sh/owner", "akri.sh/namespace", "akri.sh/instance", "app.kubernetes.io/managed-by", "x",
				`{{ print "akri.sh/" "owner" }}`, "akri.sh/deletion-policy"): g.one("x", "akri", g.own, "{{INSTANCE_NAME}}")}
		},
		"ownerReferences": func() any {
			return []any{map[string]any{"apiVersion": "v1", "kind": "Namespace", "name": "default", "uid": "x", "controller": true}}
		},
		"finalizers": func() any {
			return []any{g.one("akri.sh/cleanup", "example.com/hold", "foregroundDeletion", "orphan")}
		},
		"generateName": func() any { return "x" }, "uid": func() any { return "x" }, "resourceVersion": func() any { return "1" },
		"managedFields": func() any { return []any{} }, "deletionTimestamp": func() any { return "2020-01-01T00:00:00Z" },
		`{{ print "namespace" }}`: func() any { return "default" },
	}
	for key, extra := range extras {
		if g.chance(4) {
			m[key] = extra()
		}
	}
	annotations := map[string]any{}
	for key, values := range map[string][]string{
		"when": {"true", "{{ SHARED }}", "false", "{{", "1"}, "for-each": {"NODES", "INSTANCES", "nodes", "x"},
		"on-conflict": {"adopt", "take", "skip", "fail", "x"}, "deletion-policy": {"orphan", "delete", "x"},
		"on-immutable": {"recreate", "fail"}, "once": {"true", "x"}, "legacy-labels": {"true"},
		"ready-when": {
			"self.data.k == 'v'", "self.data[self.data.k + 'x'] == ''", "self.data.all(k, self.data.all(l, self.data.all(m, true)))",
			"self.metadata.annotations[self.metadata.name]", "[1,2,3].map(x, [1,2,3].map(y, x*y)) == []", "{{INSTANCE_NAME}}", "((((((((",
		}, "device-id": {"x"}, "objects-elsewhere": {"x"},
	} {
		if g.chance(10) {
			annotations["akri.sh/"+key] = g.one(values...)
		}
	}
	if len(annotations) > 0 {
		m["annotations"] = annotations
	}
	return m
}

// template returns one hostile template.
func (g *generator) template() map[string]any {
	t := map[string]any{"apiVersion": g.apiVersion(), "kind": g.kind(), "metadata": g.metadata()}
	if g.chance(50) {
		t["data"] = map[string]any{"k": g.expression()}
	}
	bodies := map[string]string{
		"spec": `{"containers": [{"name": "c", "image": "akri.local/workload:1", "securityContext": {"privileged": true}}], ` +
			`"hostNetwork": true, "serviceAccountName": "default", "nodeName": "node1"}`,
		"stringData": `{"k": "{{ toJson INSTANCES }}"}`, "rules": `[{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]`,
		"roleRef":  `{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}`,
		"subjects": `[{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "system:authenticated"}]`,
		"type":     `"kubernetes.io/service-account-token"`, "status": `{"phase": "Running"}`, "items": `[{"apiVersion": "v1", "kind": "Pod"}]`,
		"secrets": `[{"name": "x"}]`, "webhooks": `[]`, `{{ print "da" "ta" }}`: `{"x": "y"}`, "immutable": `true`, "binaryData": `{"x": "?"}`,
	}
	for key, body := range bodies {
		if g.chance(5) {
			t[key] = parse("x: " + body)["x"]
		}
	}
	return t
}

// nearlyValid returns a Configuration of objects that the author may create, with
// one feature that may be misused. Most are admitted.
func (g *generator) nearlyValid(name string) object {
	target := g.one(name+"-0", name+"-1", "shared", "canary", "kube-root-ca.crt")
	template := configMap(target, g.one("v", "{{ toJson INSTANCES }}", `{{ repeat 20000 "ab" }}`, "{{ NODES }}", "{{ NAMESPACE }}"))
	instance := configMap("{{INSTANCE_NAME}}-"+g.one("a", "b"), g.one("v", "{{ toJson INSTANCE_PROPERTIES }}", "{{ RESOURCE_NAME }}"))
	directive := [][]string{
		nil, {"on-conflict", "adopt"}, {"on-conflict", "skip"}, {"deletion-policy", "orphan"}, {"on-immutable", "recreate"}, {"once", "true"},
		{"for-each", "NODES"}, {"when", "{{ gt (len NODES) 0 }}"}, {"legacy-labels", "true"},
		{"ready-when", "self.data.k == 'v'"}, {"ready-when", "self.data[self.data.k + 'x'] == ''"},
		{"on-conflict", "adopt", "deletion-policy", "orphan"}, {"on-conflict", "adopt", "ready-when", "self.data.k.size() > 3"},
	}[g.IntN(13)]
	c := configuration(name, spec{
		devices:  []string{g.one("d", g.one(g.names...), "a\nb", "{{ 1 }}")},
		group:    []string{annotated(template, directive...)},
		instance: []string{instance},
		more: g.one("{}", "{capacity: 1000}", "{rollout: {maxUnavailable: 1}}",
			"{brokerProperties: {LD_PRELOAD: /x, NAME: '{{y}}'}}", "{brokerProperties: {NAME: '../x'}, sampleProperties: {NAME: x}}"),
	})
	if g.chance(15) {
		c.set([]string{g.one("example.com/hold", "akri.sh/cleanup", "foregroundDeletion")}, "metadata", "finalizers")
	}
	return c
}

// configuration returns one hostile Configuration.
func (g *generator) configuration(name string) object {
	if g.chance(40) {
		return g.nearlyValid(name)
	}
	devices := []string{g.one("d", g.one(g.names...), "../x", "{{ 1 }}", "a\nb", strings.Repeat("d", 2000))}
	if g.chance(30) {
		devices = append(devices, "second")
	}
	c := configuration(name, spec{devices: devices})
	s := c["spec"].(map[string]any)
	for _, list := range []string{"instanceBrokerResources", "configurationBrokerResources"} {
		var templates []any
		for range g.IntN(4) {
			if g.chance(55) { // one that works, so that there is something to attack
				templates = append(templates, map[string]any(parse(configMap(name+"-"+fmt.Sprint(g.IntN(3))+g.one("", "-{{NAMESPACE}}"), "v"))))
				continue
			}
			templates = append(templates, g.template())
		}
		if templates != nil {
			s[list] = templates
		}
	}
	secret := fmt.Sprintf(
		"{secretKeyRef: {name: %q, key: password, namespace: %q, optional: %t}}",
		g.one(g.names...),
		g.one(g.namespaces...),
		g.chance(50),
	)
	for key, text := range map[string]string{
		"serviceAccountName": g.one(append([]string{"default", "akri-controller", "system:masters", "../x"}, g.names...)...),
		"brokerProperties":   fmt.Sprintf("{NAME: %q, LD_PRELOAD: /x, '{{x}}': '{{y}}', 'A=B': '1'}", g.one(g.names...)),
		"sampleProperties":   "{NAME: x}", "capacity": g.one("0", "1", "1000", "1001", "-1", "'x'"), "rollout": "{maxUnavailable: 1}",
		"brokerSpec":          "{brokerPodSpec: {containers: [{name: c, image: 'akri.local/workload:1'}]}}",
		"instanceServiceSpec": "{ports: [{port: 80}], type: " + g.one("NodePort", "LoadBalancer", "ExternalName") + "}",
	} {
		if g.chance(10) {
			s[key] = parse("x: " + text)["x"]
		}
	}
	handler := s["discoveryHandler"].(map[string]any)
	if g.chance(10) {
		handler["discoveryProperties"] = []any{map[string]any{"name": "P", "valueFrom": map[string]any(parse(secret))}}
	}
	if g.chance(5) {
		handler["name"] = g.one("none", "../x", strings.Repeat("x", 250), "debugEcho ")
	}
	metadata := c["metadata"].(map[string]any)
	if g.chance(10) {
		metadata["finalizers"] = []any{g.one("example.com/hold", "akri.sh/cleanup", "foregroundDeletion")}
	}
	if g.chance(5) {
		metadata["labels"] = map[string]any{g.one("akri.sh/configuration", "app.kubernetes.io/managed-by", "akri.sh/owner"): "akri"}
	}
	if g.chance(20) {
		g.mutate(s)
	}
	return c
}

// mutate changes one place somewhere in a tree.
func (g *generator) mutate(node map[string]any) {
	for key, value := range node {
		if !g.chance(40) {
			continue
		}
		switch value := value.(type) {
		case map[string]any:
			if g.chance(70) {
				g.mutate(value)
				return
			}
		case []any:
			if len(value) > 0 {
				if inner, ok := value[g.IntN(len(value))].(map[string]any); ok && g.chance(80) {
					g.mutate(inner)
					return
				}
			}
		}
		switch g.IntN(6) {
		case 0:
			delete(node, key)
		case 1:
			node[key] = nil
		case 2:
			node[key] = g.expression()
		case 3:
			node[key] = []any{value, value}
		case 4:
			node[g.expression()] = value
		case 5:
			node[key] = map[string]any{g.name(): value}
		}
		return
	}
}
