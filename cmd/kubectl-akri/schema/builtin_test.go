package schema

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/serializer"

	"akri.sh/akri/templating/source"
)

// workloads are objects that use fields of many types.
const workloads = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, labels: {a: b}, creationTimestamp: "2026-01-01T00:00:00Z"}
spec:
  replicas: 1
  paused: false
  selector: {matchLabels: {a: b}, matchExpressions: [{key: a, operator: In, values: [b]}]}
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 10%}}
  template:
    metadata: {annotations: {a: b}}
    spec:
      terminationGracePeriodSeconds: 5
      containers:
      - name: a
        args: [a]
        env: [{name: a, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
        resources: {limits: {cpu: 1, memory: 64Mi}}
        ports: [{containerPort: 80}]
        livenessProbe: {httpGet: {port: http}}
      volumes: [{name: a, emptyDir: {sizeLimit: 1Gi}}]
---
apiVersion: v1
kind: Secret
metadata: {name: a}
immutable: true
data: {a: YWJj}
stringData: {a: b}
---
apiVersion: v1
kind: Service
metadata: {name: a}
spec: {ports: [{port: 80, targetPort: http}], selector: {a: b}, clusterIPs: [None]}
`

// TestAgreesWithTheDecoder replaces each value of some objects with wrong ones: what is
// wrong in parts must be exactly what a strict decoder rejects as a whole.
func TestAgreesWithTheDecoder(t *testing.T) {
	strict := serializer.NewCodecFactory(builtIn(), serializer.EnableStrict).UniversalDeserializer()
	compare := func(object map[string]any, what string) {
		data, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		_, _, rejected := strict.Decode(data, nil, nil)
		// The decoder accepts a list of numbers as bytes; server-side apply does not.
		isBytes := what == ".data.a = a list"
		c := &checker{object: object}
		if c.types(); (len(c.findings) > 0) != (rejected != nil || isBytes) {
			t.Errorf("%s\n  here:    %v\n  decoder: %v", what, c.findings, rejected)
		}
	}
	wrong := []any{int64(1), int64(1) << 40, 1.5, true, "text", "", []any{}, []any{int64(1)}, map[string]any{}, map[string]any{"x": "y"}, nil}
	mutations := 0
	documents, err := source.Parse("workloads.yaml", []byte(workloads))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range documents {
		object := d.Object()
		compare(object, "unchanged")
		var visit func(value any, path string)
		visit = func(value any, path string) {
			switch v := value.(type) {
			case map[string]any:
				for _, key := range slices.Sorted(maps.Keys(v)) {
					if path == "" && (key == "apiVersion" || key == "kind") {
						continue
					}
					old := v[key]
					for _, other := range wrong {
						v[key] = other
						mutations++
						compare(object, path+"."+key+" = "+describe(other))
					}
					v[key] = old
					visit(old, path+"."+key)
				}
			case []any:
				for i := range v {
					old := v[i]
					for _, other := range wrong[:len(wrong)-1] {
						v[i] = other
						compare(object, path+"[] = "+describe(other))
					}
					v[i] = old
					visit(old, path+"[]")
				}
			}
		}
		visit(object, "")
	}
	if mutations < 400 {
		t.Errorf("tried only %d values", mutations)
	}
}

// TestOtherKinds checks that kinds that are not built in are not checked.
func TestOtherKinds(t *testing.T) {
	for _, object := range []map[string]any{{}, {"apiVersion": "example.com/v1", "kind": "Pod", "x": 1},
		{"apiVersion": "v1", "kind": "Camera"}, {"apiVersion": "example/v1", "kind": "Deployment"},
		{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": map[string]any{"name": "a:b"}}} {
		if problems := CheckBuiltIn(object, nil); problems != nil {
			t.Errorf("%v: %v", object, problems)
		}
	}
	for _, apiVersion := range []string{"app/v1", "extensions/v1beta1", "apps/v2", "v1"} {
		if problems := CheckBuiltIn(map[string]any{"apiVersion": apiVersion, "kind": "Deployment"}, nil); len(problems) != 1 {
			t.Errorf("%s: %v", apiVersion, problems)
		}
	}
}
