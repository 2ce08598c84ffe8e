package webhook

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	v0 "akri.sh/akri/api/v0"
)

// BenchmarkAdmission alternates between writing a Configuration of ten objects
// through the webhook and sending ten dry runs of such objects in sequence, as a
// bare client would. It reports both in milliseconds. A write is a whole request of
// kubectl apply, including the time in the API server.
func BenchmarkAdmission(b *testing.B) {
	for _, who := range []string{"administrator", "ann"} {
		b.Run("by="+who, func(b *testing.B) {
			w := newWorld(b)
			chain, err := NewChain(w.options)
			if err != nil {
				b.Fatal(err)
			}
			var answers, writes, dryRuns []time.Duration
			handler := Handler(chain)
			w.serve(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				began := time.Now()
				handler.ServeHTTP(rw, r)
				answers = append(answers, time.Since(began)) // sequential
			}))
			user := w.as("")
			if who != "administrator" {
				w.grant(who, configurations, rule("", "pods", everyVerb...), rule("", "services", everyVerb...), rule("", "configmaps", everyVerb...),
					rule("apps", "deployments", everyVerb...))
				user = w.as(who)
			}
			bare := w.as("").api
			templates := tenObjects()
			write := func(i int) {
				text := strings.Replace(configuration(strings.Join(templates, ", "), ""), "{name: cam}", fmt.Sprintf("{name: cam-%d}", i), 1)
				if err := user.apply(text); err != nil {
					b.Fatal(err)
				}
			}
			write(-1) // opens connections and discovers kinds
			w.tenDryRuns(bare, templates)
			for i := 0; b.Loop(); i++ {
				began := time.Now()
				write(i)
				writes = append(writes, time.Since(began))
				began = time.Now()
				w.tenDryRuns(bare, templates)
				dryRuns = append(dryRuns, time.Since(began))
			}
			b.ReportMetric(0, "ns/op") // the sum of both is meaningless
			for name, took := range map[string][]time.Duration{"answer": answers, "write": writes, "ten-dry-runs": dryRuns} {
				slices.Sort(took)
				b.ReportMetric(took[len(took)/2].Seconds()*1000, name+"-p50-ms")
				b.ReportMetric(took[len(took)*99/100].Seconds()*1000, name+"-p99-ms")
			}
		})
	}
}

// tenObjects returns typical templates.
func tenObjects() []string {
	var templates []string
	for i := range 4 {
		templates = append(templates, fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ INSTANCE_NAME }}-%d"}, data: {k: `+
			`"{{ INSTANCE_PROPERTIES.K }}"}}`, i))
	}
	for i := range 3 {
		templates = append(templates, fmt.Sprintf(`{apiVersion: v1, kind: Service, metadata: {name: "{{ INSTANCE_NAME }}-%d"}, spec: `+
			`{ports: [{port: 80}], selector: "{{LABEL_SELECTOR}}"}}`, i))
	}
	for i := range 2 {
		templates = append(templates, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: "{{ INSTANCE_NAME }}-%d"}, spec: `+
			`{containers: [{name: a, image: b, resources: {limits: {"akri.sh/{{ INSTANCE_NAME }}": "1"}}}]}}`, i))
	}
	return append(templates, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: "{{ INSTANCE_NAME }}-d"}, spec: {selector: `+
		`{matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: b}]}}}}`)
}

// tenDryRuns sends dry runs of the templates in sequence.
func (w *world) tenDryRuns(api dynamic.Interface, templates []string) {
	w.Helper()
	for _, template := range templates {
		text := strings.NewReplacer(`"{{LABEL_SELECTOR}}"`, "{a: b}", "{{ INSTANCE_NAME }}", "bare", "{{ INSTANCE_PROPERTIES.K }}",
			"v").Replace(template)
		object := decode(w, text)
		mapping, err := w.options.Mapper.RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version)
		if err != nil {
			w.Fatal(err)
		}
		_, err = api.Resource(mapping.Resource).Namespace(w.Namespace).
			Apply(w.Context(), object.GetName(), object, metav1.ApplyOptions{FieldManager: v0.FieldManagerController,
				DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			w.Fatal(err)
		}
	}
}
