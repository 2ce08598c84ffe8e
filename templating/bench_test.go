package templating_test

import (
	"fmt"
	"strings"
	"testing"

	"akri.sh/akri/templating"
)

// deployment returns a Deployment of about that many lines of YAML, some of them with
// an expression.
func deployment(t testing.TB, lines int) map[string]any {
	var b strings.Builder
	b.WriteString(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: "{{ INSTANCE_NAME }}-broker"
spec:
  replicas: "{{ len NODES }}"
  selector:
    matchLabels: "{{ LABEL_SELECTOR }}"
  template:
    metadata:
      labels:
        app: broker
    spec:
      containers:
      - name: broker
        image: registry.example.com/broker:1.2.3
        resources:
          requests: {cpu: 10m, memory: 10Mi, "{{ RESOURCE_NAME }}": "1"}
          limits: {cpu: 29m, memory: 30Mi, "{{ RESOURCE_NAME }}": "1"}
        ports:
        - containerPort: '{{ get INSTANCE_PROPERTIES "PORT" | default "8080" | int }}'
          protocol: TCP
        env:
`)
	for i := 0; strings.Count(b.String(), "\n") < lines; i++ {
		value := "plain text that stays as it is"
		if i%5 < 2 {
			value = `"rtsp://{{ INSTANCE_PROPERTIES.IP }}:554/{{ INSTANCE_NAME | lower }}"`
		}
		fmt.Fprintf(&b, "        - name: VARIABLE_%d\n          value: %s\n", i, value)
	}
	return decode[map[string]any](t, []byte(b.String()))
}

func fields(value any) int {
	n := 0
	switch v := value.(type) {
	case map[string]any:
		for _, element := range v {
			n += fields(element)
		}
	case []any:
		for _, element := range v {
			n += fields(element)
		}
	default:
		return 1
	}
	return n
}

func BenchmarkCompile(b *testing.B) {
	for _, lines := range []int{50, 200} {
		templates := []map[string]any{deployment(b, lines)}
		b.Run(fmt.Sprintf("lines=%d/fields=%d", lines, fields(templates[0])), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				templating.Compile(templating.InstanceLevel, templates)
			}
		})
	}
	s, _ := archive(b, "proposal")
	b.Run("proposal", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			templating.Compile(templating.InstanceLevel, s.InstanceBrokerResources)
		}
	})
}

func BenchmarkRender(b *testing.B) {
	for _, lines := range []int{50, 90, 200} {
		templates := []map[string]any{deployment(b, lines)}
		set := mustCompile(b, templating.InstanceLevel, templates)
		b.Run(fmt.Sprintf("lines=%d/fields=%d", lines, fields(templates[0])), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, diags := set.Render(camera); len(diags) > 0 {
					b.Fatal(diags)
				}
			}
		})
	}
	s, f := archive(b, "proposal")
	set := mustCompile(b, templating.InstanceLevel, s.InstanceBrokerResources)
	values := f.values(f.Instances[0])
	b.Run("proposal", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			set.Render(values)
		}
	})
	b.Run("proposal/parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				set.Render(values)
			}
		})
	})
}
