package attacks

import (
	"fmt"
	"strings"
	"testing"

	"akri.sh/akri/kubebox/clustertest"
)

// brokerPod is the template of a Pod that its author would not be allowed to create.
const brokerPod = `
apiVersion: v1
kind: Pod
metadata: {name: "{{INSTANCE_NAME}}-pod"}
spec: {containers: [{name: c, image: "akri.local/workload:1", securityContext: {privileged: true}}]}
`

// A user who may write Configurations, and nothing else, gets no Pod by one that is
// being deleted.
func TestTerminatingConfiguration(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	author := w.as("author", configurationsOnly)
	pod := func(name string) object {
		return configuration(name, spec{devices: []string{"d"}, instance: []string{brokerPod}})
	}
	w.refuse("control: a Pod", author.create(pod("pod-plain")), "may not create")

	held := configuration("pod-terminating", spec{devices: []string{"d"}}).set([]string{"example.com/hold"}, "metadata", "finalizers")
	w.must(author.create(held))
	instance := w.instances("pod-terminating", 1)[0]
	w.must(author.delete("Configuration", w.namespace, "pod-terminating"))
	w.refuse("a Pod in the terminating Configuration", author.apply(pod("pod-terminating")))

	// Even a Pod that is admitted, to an administrator, is not rendered any more.
	w.must(w.admin.apply(pod("pod-terminating")))
	w.eventually("the agents withdraw the Instance", func() string {
		if w.find("Instance", instance.name()) != nil {
			return "it exists"
		}
		return ""
	})
	w.must(w.admin.create(parse(`
apiVersion: akri.sh/v0
kind: Instance
metadata: {name: pod-terminating-abcdef, labels: {akri.sh/configuration: pod-terminating}}
spec: {configurationName: pod-terminating, cdiName: akri.sh/pod-terminating=abcdef, capacity: 1, nodes: [node1]}
`)))
	w.converged("after-terminating")
	w.absent("Pod", "")
}

// Nor by another spelling of apiVersion or kind, with and without the webhook.
func TestSpellings(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	author := w.as("author", configurationsOnly)
	pod := func(apiVersion, kindName string) object {
		template := parse(brokerPod).set(apiVersion, "apiVersion").set(kindName, "kind")
		return configuration("pod-spelling", spec{devices: []string{"d"}, instance: []string{string(template.json())}})
	}
	for _, spelling := range []string{"/v1", "v1/", "//v1", "v1 ", "V1", "core/v1"} {
		w.refuse("apiVersion "+spelling, author.create(pod(spelling, "Pod")))
	}
	w.skipWebhook()
	defer w.useWebhook()
	w.refuse("control: v1 Pod without the webhook", author.create(pod("v1", "Pod")), "may not create pods")
	for _, spelling := range [][2]string{{"/v1", "Pod"}, {"//v1", "Pod"}, {"v1/", "Pod"}, {"v1", "pod"}, {"v1", "Pods"}} {
		if a := author.create(pod(spelling[0], spelling[1])); a.ok() { // no such kind, or never rendered
			w.instances("pod-spelling", 1)
			w.await("pod-spelling", "Applied", "False")
			w.absent("Pod", "")
			w.must(w.admin.delete("Configuration", w.namespace, "pod-spelling"))
		}
	}

	// Both together: another spelling, in a Configuration that is being deleted.
	held := configuration("pod-chain", spec{devices: []string{"d"}}).set([]string{"example.com/hold"}, "metadata", "finalizers")
	w.must(author.create(held))
	w.instances("pod-chain", 1)
	w.must(author.delete("Configuration", w.namespace, "pod-chain"))
	author.apply(pod("/v1", "Pod").set("pod-chain", "metadata", "name"))
	w.converged("after-chain")
	w.absent("Pod", "")
}

// What a Configuration refers to must be readable for its author.
func TestReferencesWithoutRights(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	author := w.as("author", configurationsOnly)
	reader := w.as("reader", configurationsOnly, rule{"", "secrets,configmaps", "get"})
	w.must(w.admin.create(parse("{apiVersion: v1, kind: Secret, metadata: {name: others}, stringData: {password: canary-secret-9f3a}}")))
	w.must(w.admin.create(parse(configMap("others", "canary-config-9f3a"))))

	refer := func(name, source string) object {
		return configuration(name, spec{more: fmt.Sprintf(`
discoveryHandler:
  name: debugEcho
  discoveryDetails: "descriptions: [d]"
  discoveryProperties: [{name: P, valueFrom: {%s}}]
`, source)})
	}
	for name, source := range map[string]string{
		"ref-secret":    "secretKeyRef: {name: others, key: password}",
		"ref-optional":  "secretKeyRef: {name: others, key: password, optional: true}",
		"ref-configmap": "configMapKeyRef: {name: others, key: k}",
		"ref-elsewhere": "secretKeyRef: {name: akri-webhook, namespace: akri-system, key: tls.key}",
	} {
		w.refuse("discoveryProperties of "+name, author.create(refer(name, source), "dryRun", "All"), "get")
	}
	for name, source := range map[string]string{
		"ref-secret":    "secretKeyRef: {name: others, key: password}",
		"ref-configmap": "configMapKeyRef: {name: others, key: k}",
	} {
		if a := reader.create(refer(name, source), "dryRun", "All"); !a.ok() {
			t.Errorf("control: a reader is refused: %v", a)
		}
	}
}

// A ServiceAccount that a Configuration names must be one that its author may
// impersonate, with and without the webhook.
func TestAccountWithoutRights(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	author := w.as("author", configurationsOnly)
	delegate := w.as("delegate", configurationsOnly, rule{"akri.sh", "configurations", "delegate"})
	w.must(w.admin.create(parse("{apiVersion: v1, kind: ServiceAccount, metadata: {name: strong}}")))
	c := func() object {
		return configuration("account", spec{devices: []string{"d"}, instance: []string{brokerPod}, more: "{serviceAccountName: strong}"})
	}
	w.refuse("an account", author.create(c()), "impersonate")
	w.refuse("an account, to a user who may delegate", delegate.create(c()), "impersonate")
	for _, name := range []string{"system:serviceaccount:kube-system:x", "../strong", "other:strong", "STRONG"} {
		bad := c()
		bad["spec"].(map[string]any)["serviceAccountName"] = name
		w.refuse("account "+name, w.admin.create(bad))
	}
	w.skipWebhook()
	w.refuse("an account, without the webhook", author.create(c()), "impersonate")
}

// The right to delegate, and rights on one name, do not extend to others.
func TestNarrowRights(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	narrow := w.as("narrow", configurationsOnly)
	w.must(w.admin.patch("Role", w.namespace, narrow.name, fmt.Sprintf(`
rules:
- {apiGroups: [akri.sh], resources: [configurations], verbs: [get, list, watch, create, patch, update, delete]}
- {apiGroups: [akri.sh], resources: [configurations], resourceNames: [mine], verbs: [delegate]}
- {apiGroups: [""], resources: [configmaps], verbs: [create]}
- {apiGroups: [""], resources: [configmaps], resourceNames: [fixed-%[1]s], verbs: [patch, delete]}
`, w.namespace)))
	pod := spec{devices: []string{"d"}, instance: []string{brokerPod}}
	w.eventually("control: delegate for one name", func() string {
		if a := narrow.create(configuration("mine", pod), "dryRun", "All"); !a.ok() {
			return a.String()
		}
		return ""
	})
	w.refuse("delegate for another name", narrow.create(configuration("not-mine", pod)), "may not create")
	generated := configuration("", pod)
	generated["metadata"] = map[string]any{"generateName": "mine"}
	w.refuse("delegate by generateName", narrow.create(generated))
	fixed := spec{devices: []string{"d"}, group: []string{configMap("fixed-"+w.namespace, "v")}}
	if a := narrow.create(configuration("narrow-fixed", fixed), "dryRun", "All"); !a.ok() {
		t.Errorf("control: an object of the one allowed name: %v", a)
	}
	w.refuse("an object of another name", narrow.create(
		configuration("narrow-other", spec{devices: []string{"d"}, group: []string{configMap("other", "v")}})), "configmaps")
	w.refuse("an object whose name is computed", narrow.create(
		configuration("narrow-computed", spec{devices: []string{"d"}, group: []string{configMap("fixed-{{NAMESPACE}}", "v")}})), "configmaps")
	createOnly := w.as("create-only", configurationsOnly, rule{"", "configmaps", "create"})
	w.refuse("create without patch and delete", createOnly.create(
		configuration("create-only", spec{devices: []string{"d"}, group: []string{configMap("x", "v")}})), "delete", "patch")
}

// Kinds, places and metadata that no template may have, not even an administrator's.
func TestNeverRendered(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	for what, template := range map[string]string{
		"another namespace":   "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: default}}",
		"a cluster role":      "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: x}}",
		"a role":              "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: x}}",
		"a namespace":         "{apiVersion: v1, kind: Namespace, metadata: {name: x}}",
		"a node":              "{apiVersion: v1, kind: Node, metadata: {name: x}}",
		"an Instance":         "{apiVersion: akri.sh/v0, kind: Instance, metadata: {name: x-y}, spec: {configurationName: x, capacity: 1}}",
		"a token request":     "{apiVersion: authentication.k8s.io/v1, kind: TokenRequest, metadata: {name: x}}",
		"a CSR":               "{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: x}}",
		"an APIService":       "{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: x}}",
		"a webhook":           "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: x}}",
		"a CRD":               "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: x}}",
		"an owner":            "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, ownerReferences: [{kind: Pod, name: y, uid: z}]}}",
		"a label of Akri's":   "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, labels: {akri.sh/owner: x}}}",
		"a computed label":    `{apiVersion: v1, kind: ConfigMap, metadata: {name: x, labels: {"{{ print \"akri.sh/\" \"owner\" }}": x}}}`,
		"another manager":     "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, labels: {app.kubernetes.io/managed-by: x}}}",
		"a uid":               "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, uid: y}}",
		"managed fields":      "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, managedFields: []}}",
		"a computed kind":     `{apiVersion: v1, kind: "{{ print \"Sec\" \"ret\" }}", metadata: {name: x}}`,
		"a computed metadata": `{apiVersion: v1, kind: ConfigMap, metadata: {name: x, "{{ print \"ownerReferences\" }}": []}}`,
		"a computed root":     `{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, "{{ print \"da\" \"ta\" }}": {}}`,
		"a status":            "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, status: {}}",
		"a generated name":    "{apiVersion: v1, kind: ConfigMap, metadata: {generateName: x}}",
		"a token Secret":      "{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: x}}",
		"a bootstrap token":   "{apiVersion: v1, kind: Secret, type: bootstrap.kubernetes.io/token, metadata: {name: x}}",
	} {
		t.Run(what, func(t *testing.T) {
			w := w.sub(t)
			w.refuse(what, w.admin.create(configuration("never", spec{devices: []string{"d"}, group: []string{template}}), "dryRun", "All"))
		})
	}
	w.must(w.admin.create(configuration("never-control", spec{devices: []string{"d"}, group: []string{configMap("x", "v")}}), "dryRun", "All"))
}

// PodSecurity judges an author's Pods as ever.
func TestPodSecurity(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	w.must(w.admin.patch("Namespace", "", w.namespace, "metadata: {labels: {pod-security.kubernetes.io/enforce: baseline}}"))
	author := w.as("author", configurationsOnly, writes("", "pods"))
	w.refuse("control: the Pod itself", author.create(parse(strings.ReplaceAll(brokerPod, "{{INSTANCE_NAME}}", "x"))), "violates PodSecurity")
	w.refuse("a privileged Pod", author.create(
		configuration("privileged", spec{devices: []string{"d"}, instance: []string{brokerPod}})), "violates PodSecurity")
}
