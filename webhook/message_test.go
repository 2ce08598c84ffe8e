package webhook

import (
	"strings"
	"testing"
)

func TestShow(t *testing.T) {
	w := enter(t)
	w.guard()
	admin := w.as("")
	for name, tc := range map[string]string{
		"port":   `{apiVersion: v1, kind: Service, metadata: {name: "{{ INSTANCE_NAME }}-svc"}, spec: {ports: [{port: "{{ INSTANCE_PROPERTIES.PORT }}"}]}}`,
		"env":    `{apiVersion: v1, kind: Pod, metadata: {name: "{{ INSTANCE_NAME }}-pod"}, spec: {containers: [{name: a, image: b, env: [{name: N, value: "{{ CAPACITY }}"}]}]}}`,
		"typo":   `{apiVersion: v1, kind: Pod, metadata: {name: "{{ INSTANCE_NAME }}-pod"}, spec: {container: [{name: a, image: b}]}}`,
		"typo2":   `{apiVersion: v1, kind: Pod, metadata: {name: "{{ INSTANCE_NAME }}-pod"}, spec: {containers: [{name: a, image: b, imagePulPolicy: Always}]}}`,
		"bool":   `{apiVersion: v1, kind: Pod, metadata: {name: "{{ INSTANCE_NAME }}-pod"}, spec: {hostNetwork: "{{ INSTANCE_PROPERTIES.X }}", containers: [{name: a, image: b}]}}`,
		"invalid":   `{apiVersion: v1, kind: Pod, metadata: {name: "{{ INSTANCE_NAME }}-pod"}, spec: {containers: [{name: A, image: b, imagePullPolicy: "{{ INSTANCE_PROPERTIES.P }}"}]}}`,
		"quantity":   `{apiVersion: v1, kind: Pod, metadata: {name: "{{ INSTANCE_NAME }}-pod"}, spec: {containers: [{name: a, image: b, resources: {limits: {cpu: "x{{ INSTANCE_PROPERTIES.P }}"}}}]}}`,
		"list":   `{apiVersion: v1, kind: Service, metadata: {name: "{{ INSTANCE_NAME }}-svc"}, spec: {ports: {port: 1}}}`,
		"selector":   `{apiVersion: v1, kind: Service, metadata: {name: "{{ INSTANCE_NAME }}-svc"}, spec: {ports: [{name: x}]}}`,
		"dep":   `{apiVersion: apps/v1, kind: Deployment, metadata: {name: "{{ INSTANCE_NAME }}-d"}, spec: {replicas: "{{ INSTANCE_PROPERTIES.N }}", selector: {matchLabels: {a: b}}, template: {metadata: {labels: {c: d}}, spec: {containers: [{name: a, image: b}]}}}}`,
		"kind":   `{apiVersion: x.y/v1, kind: Foo, metadata: {name: "{{ INSTANCE_NAME }}-d"}}`,
		"secret":   `{apiVersion: v1, kind: Secret, metadata: {name: "{{ INSTANCE_NAME }}-d"}, data: {a: "***"}}`,
		"name":   `{apiVersion: v1, kind: ConfigMap, metadata: {name: "X{{ INSTANCE_NAME }}-d"}, data: {a: "***"}}`,
		"collide":   `{apiVersion: v1, kind: ConfigMap, metadata: {name: "x"}, data: {a: "***"}}`,
		"collide2":   `{apiVersion: v1, kind: ConfigMap, metadata: {annotations: {akri.sh/for-each: NODES}, name: "{{ NODE }}"}, data: {a: "***"}}`,
		"scope":   `{apiVersion: v1, kind: Namespace, metadata: {name: "a{{INSTANCE_NAME}}"}}`,
		"role":   `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: "a{{INSTANCE_NAME}}"}}`,
		"ok":   `{apiVersion: v1, kind: ConfigMap, metadata: {name: "a{{INSTANCE_NAME}}"}}`,
	} {
		err := admin.apply(strings.Replace(configuration(tc, ""), "cam", name, 1))
		t.Logf("%s: %v\nWARN %s", name, err, admin.heard.all())
	}
}
