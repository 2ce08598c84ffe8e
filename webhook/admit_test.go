package webhook

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
)

// Messages name the place, the cause, and what to write instead.
func TestMessages(t *testing.T) {
	w := newWorld(t)
	w.guard()
	admin := w.as("")
	const (
		pod     = `{apiVersion: v1, kind: Pod, metadata: {name: "{{ INSTANCE_NAME }}-pod"}, spec: `
		service = `{apiVersion: v1, kind: Service, metadata: {name: "{{ INSTANCE_NAME }}-svc"}, spec: `
		valid   = `{apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ INSTANCE_NAME }}-ok"}}`
	)
	for name, tc := range map[string]struct {
		instance, group string
		says            []string
	}{
		"a string for an integer": {
			instance: valid + "," + service + `{ports: [{port: "{{ INSTANCE_PROPERTIES.PORT }}"}]}}`,
			says: []string{`spec.instanceBrokerResources[1].spec.ports[0].port: "{{ INSTANCE_PROPERTIES.PORT }}" gives the string "1", ` +
				`but the API server expects an integer; write {{ INSTANCE_PROPERTIES.PORT | int }}`},
		},
		"a number for a string": {
			instance: pod + `{containers: [{name: a, image: b, env: [{name: CAP, value: "{{ CAPACITY }}"}]}]}}`,
			says: []string{`spec.instanceBrokerResources[0].spec.containers[0].env[0].value: "{{ CAPACITY }}" gives the number 1, but the ` +
				`API server expects a string; write {{ CAPACITY | toString }}`},
		},
		"a string for a boolean": {
			instance: pod + `{hostNetwork: "{{ INSTANCE_PROPERTIES.SECURE }}", containers: [{name: a, image: b}]}}`,
			says: []string{`spec.hostNetwork: "{{ INSTANCE_PROPERTIES.SECURE }}" gives the string "1", but the API server expects true or ` +
				`false; write {{ INSTANCE_PROPERTIES.SECURE | eq "true" }}`},
		},
		"a field that no kind has": {
			instance: pod + `{containers: [{name: a, image: b, imagePulPolicy: Always}]}}`,
			says: []string{`spec.instanceBrokerResources[0].spec.containers[0].imagePulPolicy: kind Pod has no such field; correct its ` +
				`name, or remove it`},
		},
		"a map for a list": {
			group: strings.Replace(service, "{{ INSTANCE_NAME }}-svc", "group", 1) + `{ports: {port: 1}}}`,
			says:  []string{`spec.configurationBrokerResources[0].spec.ports: it is a map, but the API server expects a list`},
		},
		"values that are not allowed, all at once": {
			instance: pod + `{containers: [{name: A, image: b, imagePullPolicy: "{{ INSTANCE_PROPERTIES.POLICY }}"}]}}`,
			says: []string{
				`spec.instanceBrokerResources[0].spec.containers[0].name: the API server rejects it: Invalid value: "A"`,
				`spec.instanceBrokerResources[0].spec.containers[0].imagePullPolicy: "{{ INSTANCE_PROPERTIES.POLICY }}" gives the string "1", ` +
					`which the API server rejects: Unsupported value`,
				`spec.sampleProperties`,
			},
		},
		"an invalid quantity": {
			instance: pod + `{containers: [{name: a, image: b, resources: {limits: {cpu: "x{{ INSTANCE_PROPERTIES.CPU }}"}}}]}}`,
			says:     []string{`spec.instanceBrokerResources[0]: the API server rejects it`, `quantities must match`, `spec.sampleProperties`},
		},
		"a variable twice in the second container": {
			instance: pod + `{containers: [{name: a, image: b, env: [{name: L, value: x}]}, {name: c, image: b, env: [{name: L, value: x}, ` +
				`{name: L, value: z}]}]}}`,
			says: []string{`spec.instanceBrokerResources[0].spec.containers[1].env: .spec.containers[name="c"].env has duplicate entries for ` +
				`key [name="L"]; remove one`},
		},
		"a port as a string": {
			instance: service + `{ports: [{name: a, port: 1, targetPort: "8080"}]}}`,
			says:     []string{`spec.ports[0].targetPort`, `must contain at least one letter`, `write a number without quotes`},
		},
		"a label and a key from expressions": {
			instance: `{apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ INSTANCE_NAME }}-c", labels: {a: "{{ NODES }} b"}}, ` +
				`data: {"{{ NODES }} c": d}}`,
			says: []string{`metadata.labels: `, `data["node-a c"]: `, `append | labelValue to the expression`},
		},
		"a misspelt kind of Kubernetes": {
			instance: `{apiVersion: apps/v1, kind: Deploymnet, metadata: {name: "{{ INSTANCE_NAME }}-d"}}`,
			says: []string{`spec.instanceBrokerResources[0].kind: the API server has no kind "Deploymnet" in "apps/v1"; correct apiVersion ` +
				`and kind`},
		},
		"mistakes in several templates": {
			instance: pod + `{containers: "{{ INSTANCE_NAM }}"}}` + "," + service + `{ports: "{{ PORT ` + `}}"}}`,
			says:     []string{`spec.instanceBrokerResources[0].spec.containers`, `INSTANCE_NAM`, `spec.instanceBrokerResources[1].spec.ports`},
		},
		"one name for all devices": {
			instance: `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}`,
			says: []string{`spec.instanceBrokerResources[0].metadata.name: two devices on one node get the same name "settings", and thus ` +
				`the same object: build it from INSTANCE_NAME`},
		},
		"one name for all devices of a node": {
			instance: `{apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ NODE }}-settings", annotations: {akri.sh/for-each: NODES}}}`,
			says:     []string{`spec.instanceBrokerResources[0].metadata.name: two devices on one node get the same name`},
		},
		"one name for two templates": {
			instance: valid + "," + valid,
			says:     []string{`spec.instanceBrokerResources[1].metadata.name`, `the same object is rendered by instanceBrokerResources[0]`},
		},
		"one name in both lists": {
			instance: `{apiVersion: v1, kind: ConfigMap, metadata: {name: "all-{{ CONFIGURATION_NAME }}", annotations: {akri.sh/on-conflict: ` +
				`skip}}}`,
			group: `{apiVersion: v1, kind: ConfigMap, metadata: {name: "all-{{ CONFIGURATION_NAME }}"}}`,
			says: []string{`spec.configurationBrokerResources[0].metadata.name: "all-`, `is also the name of an object of ` +
				`instanceBrokerResources[0]`},
		},
		"a Secret": {
			instance: `{apiVersion: v1, kind: Secret, metadata: {name: "{{ INSTANCE_NAME }}-s"}, type: kubernetes.io/tls, stringData: ` +
				`{tls.crt: hush-hush}}`,
			says: []string{`spec.instanceBrokerResources[0]`, `the API server's message about a Secret is not repeated`},
		},
		"a failure for every guess": {
			instance: `{apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ INSTANCE_NAME }}-c"}, data: {k: "{{ index INSTANCE_PROPERTIES ` +
				`(printf \"K%d\" 1) }}"}}`,
			says: []string{`spec.instanceBrokerResources[0].data.k`},
		},
		"discoveryDetails": {
			instance: valid,
			says:     []string{`spec.discoveryHandler.discoveryDetails: discriptions: unknown key; did you mean descriptions?`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			text := configuration(tc.instance, tc.group)
			if name == "discoveryDetails" {
				text = strings.Replace(text, "descriptions: [foo0]", "discriptions: [foo0]", 1)
			}
			err := admin.apply(text)
			for _, words := range tc.says {
				expect(t, err, words)
			}
			if err != nil && strings.Contains(err.Error(), "hush-hush") {
				t.Errorf("a value of a Secret is shown: %v", err)
			}
		})
	}
}

// A template that is valid for some device is admitted.
func TestValidTemplatesAreAdmitted(t *testing.T) {
	w := newWorld(t)
	w.guard()
	admin := w.as("")
	for name, instance := range map[string]string{
		"a port": `{apiVersion: v1, kind: Service, metadata: {name: "{{ INSTANCE_NAME }}-svc"}, spec: {ports: [{port: ` +
			`"{{ INSTANCE_PROPERTIES.WEB | int }}"}]}}`,
		"an address": `{apiVersion: v1, kind: Service, metadata: {name: "{{ INSTANCE_NAME }}-svc"}, spec: {ports: [{port: ` +
			`80}], externalIPs: ["{{ INSTANCE_PROPERTIES.DEVICE_IP }}"]}}`,
		"a name of a property": `{apiVersion: v1, kind: ConfigMap, metadata: {name: "c-{{ INSTANCE_PROPERTIES.SERIAL | lower }}"}}`,
		"two names of two properties": `{apiVersion: v1, kind: ConfigMap, metadata: {name: "c-{{ INSTANCE_PROPERTIES.A }}"}}, {apiVersion: ` +
			`v1, kind: ConfigMap, metadata: {name: "c-{{ INSTANCE_PROPERTIES.B }}"}}`,
		"an amount": `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: "{{ INSTANCE_NAME }}", ` +
			`annotations: {akri.sh/deletion-policy: orphan}}, spec: ` +
			`{accessModes: [ReadWriteOnce], resources: {requests: {storage: "{{ INSTANCE_PROPERTIES.DISK }}Gi"}}}}`,
		"one port with two protocols": `{apiVersion: v1, kind: Service, metadata: {name: "{{ INSTANCE_NAME }}"}, spec: {ports: ` +
			`[{name: rtsp, port: 554}, {name: rtsp-udp, port: 554, protocol: UDP}]}}`,
		"for shared devices only": `{apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ INSTANCE_NAME }}", annotations: ` +
			`{akri.sh/when: "{{ SHARED }}"}}}`,
		"one for all, left alone": `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, annotations: {akri.sh/on-conflict: skip}}}`,
		"one per node": `{apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ INSTANCE_NAME }}-{{ NODE }}", annotations: ` +
			`{akri.sh/for-each: NODES}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			if err := admin.apply(configuration(instance, "")); err != nil {
				t.Error(err)
			}
			if warnings := admin.warnings.take(); warnings != "" {
				t.Errorf("warned: %s", warnings)
			}
		})
	}
}

// Sample properties replace guesses: they can make a template valid, or invalid.
func TestSampleProperties(t *testing.T) {
	w := newWorld(t)
	w.guard()
	admin := w.as("")
	policy := configuration(`{apiVersion: v1, kind: Pod, metadata: {name: "{{ INSTANCE_NAME }}-pod"}, spec: {containers: [{name: a, `+
		`image: b, imagePullPolicy: "{{ INSTANCE_PROPERTIES.POLICY }}"}]}}`, "")
	expect(t, admin.apply(policy), "spec.sampleProperties")
	expect(t, admin.apply(policy+"  sampleProperties: {POLICY: Always}\n"), "")
	err := admin.apply(policy + "  sampleProperties: {POLICY: Sometimes}\n")
	expect(t, err, `gives the string "Sometimes"`)
	if strings.Contains(err.Error(), "made up") {
		t.Errorf("no property had to be made up: %v", err)
	}
	expect(t, admin.apply(policy+"  brokerProperties: {POLICY: Never}\n  sampleProperties: {POLICY: Sometimes}\n"), "") // as for real devices
	// An existing device has properties, too.
	expect(t, admin.apply(policy+"  sampleProperties: {POLICY: Always}\n"), "")
	w.device("cam", "cam-1", "{POLICY: Always}")
	expect(t, admin.apply(strings.Replace(policy, "image: b", "image: c", 1)), "")
	// Devices of one model do not collide.
	expect(t, admin.apply(configuration(`{apiVersion: v1, kind: ConfigMap, metadata: {name: "c-{{ INSTANCE_PROPERTIES.SERIAL }}"}}`,
		"")+"  sampleProperties: {SERIAL: a7}\n"), "")
	expect(t, admin.apply(configuration(`{apiVersion: v1, kind: ConfigMap, metadata: {name: "c-{{ INSTANCE_PROPERTIES.SERIAL }}"}}`,
		"")+"  brokerProperties: {SERIAL: a7}\n"), "two devices")
}

// What cannot be known yet is admitted with a warning.
func TestInconclusive(t *testing.T) {
	w := newWorld(t)
	w.guard()
	admin := w.as("")
	for _, group := range []string{"nowhere.example", "plant"} { // an aggregated API may have no dot
		expect(t, admin.apply(configuration(`{apiVersion: `+group+`/v1, kind: Thing, metadata: {name: "{{ INSTANCE_NAME }}"}}`, "")), "")
		if warnings := admin.warnings.take(); !strings.Contains(warnings, `spec.instanceBrokerResources[0].kind: the API server has no kind `+
			`"Thing"`) {
			t.Errorf("warned: %q", warnings)
		}
	}
	quota := admin.make(quotas, `{apiVersion: v1, kind: ResourceQuota, metadata: {name: none}, spec: {hard: {configmaps: "0"}}}`)
	// As its controller does.
	quota.Object["status"] = map[string]any{"hard": map[string]any{"configmaps": "0"}, "used": map[string]any{"configmaps": "0"}}
	if _, err := admin.api.Resource(quotas).Namespace(w.Namespace).UpdateStatus(t.Context(), quota, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	tries := 0
	w.Eventually("the quota is enforced", func() string {
		tries++ // an unchanged spec is not reviewed
		if err := admin.apply(configuration(fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ INSTANCE_NAME }}-%d"}}`, tries),
			"")); err != nil {
			t.Fatal(err)
		}
		if warnings := admin.warnings.take(); !strings.Contains(warnings, "quota") {
			return "warned: " + warnings
		}
		return ""
	})
}

// Objects of one Configuration may need each other.
func TestNeededBySiblings(t *testing.T) {
	w := newWorld(t)
	w.guard()
	class := `{apiVersion: v1, kind: Pod, metadata: {name: "{{ INSTANCE_NAME }}"}, ` +
		`spec: {priorityClassName: nowhere, containers: [{name: a, image: b}]}}`
	expect(t, w.as("").apply(configuration(class, "")), "PriorityClass nowhere does not exist; create it")

	w.register(w.otherWebhook("services", denyAll(`configmap "settings" not found`)))
	service := `{apiVersion: v1, kind: Service, metadata: {name: "{{ INSTANCE_NAME }}"}, spec: {ports: [{port: 80}]}}`
	settings := `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}`
	admin := w.as("")
	w.Eventually("the other webhook denies it", func() string {
		err := admin.dryRun(configuration(service, ""))
		if err == nil || !strings.Contains(err.Error(), `admission webhook "third.party.example" denies it`) {
			return fmt.Sprint(err)
		}
		return ""
	})
	admin.warnings.take()
	expect(t, admin.apply(configuration(service, settings)), "")
	if warnings := admin.warnings.take(); !strings.Contains(warnings, "does not exist yet") {
		t.Errorf("warned: %q", warnings)
	}
}

// Nodes know a group by its name alone, without the namespace.
func TestSameNameInTwoNamespaces(t *testing.T) {
	here, there := newWorld(t), newWorld(t)
	here.guard()
	there.guard()
	text := strings.Replace(configuration("", ""), "cam", "twin", 1)
	expect(t, here.as("").apply(text), "")
	expect(t, here.as("").apply(text+"  capacity: 2\n"), "") // the same Configuration
	err := there.as("").apply(text)
	expect(t, err, `metadata.name: another namespace has a Configuration "twin"`)
	if strings.Contains(err.Error(), here.Namespace) {
		t.Errorf("the name of another namespace is shown: %v", err)
	}
	// The name is free once agents no longer serve the other, however long it is deleted.
	hold := func(finalizers ...any) {
		if err := here.patchMetadata(here.as("").api, v0.ConfigurationResource, "twin", map[string]any{"finalizers": finalizers}); err != nil {
			t.Error(err)
		}
	}
	hold("example.com/hold")
	if err := here.as("").api.Resource(v0.ConfigurationResource).Namespace(here.Namespace).
		Delete(t.Context(), "twin", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	expect(t, there.as("").apply(text), "")
	hold()
}
