package webhook

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/kinds"
	"akri.sh/akri/internal/cputime"
	"akri.sh/akri/internal/finding"
	"akri.sh/akri/webhook/certs"
)

// reviewFunc is a reviewer.
type reviewFunc func(context.Context, admissionRequest) []Finding

func (f reviewFunc) review(ctx context.Context, r admissionRequest) []Finding { return f(ctx, r) }

// While the webhook is down, writing a Configuration fails with a clear message, and
// nothing is lost.
func TestWebhookDown(t *testing.T) {
	w := newWorld(t)
	admin := w.as("")
	expect(t, admin.apply(configuration(aPod, "")), "")
	nowhere := "https://127.0.0.1:1" + certs.Path
	hook := w.registration()
	hook.ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: &nowhere}
	remove := w.register(hook)
	changed := strings.Replace(configuration(aPod, ""), "image: b", "image: c", 1)
	w.Eventually("the webhook is called", func() string {
		if err := admin.apply(changed); err == nil {
			changed = strings.Replace(changed, "image: ", "image: c", 1)
			return "it is not called"
		}
		return ""
	})
	expect(t, admin.apply(strings.Replace(changed, "image: ", "image: d", 1)), "failed calling webhook")
	// Agents can write Instances. Labels, finalizers and deletions need no webhook.
	w.device("cam", "cam-1", "{}")
	labelled := []byte(`{"metadata":{"labels":{"l":"v"},"finalizers":["akri.sh/test"]}}`)
	api := admin.api.Resource(v0.ConfigurationResource).Namespace(w.Namespace)
	if _, err := api.Patch(t.Context(), "cam", types.MergePatchType, labelled, metav1.PatchOptions{}); err != nil {
		t.Errorf("labels cannot be written: %v", err)
	}
	if err := api.Delete(t.Context(), "cam", metav1.DeleteOptions{}); err != nil {
		t.Errorf("it cannot be deleted: %v", err)
	}
	if _, err := api.Patch(t.Context(), "cam", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`),
		metav1.PatchOptions{}); err != nil {
		t.Errorf("its deletion cannot be completed: %v", err)
	}
	remove()
	w.Eventually("admission without the webhook", func() string {
		if err := admin.apply(configuration(aPod, "")); err != nil {
			return err.Error()
		}
		return ""
	})
}

// In an emergency, a label on the namespace turns off the webhook.
func TestEscapeLabel(t *testing.T) {
	w := newWorld(t)
	w.serve(handlerFor(reviewFunc(func(context.Context, admissionRequest) []Finding {
		return []Finding{{Deny, finding.Mistake{Cause: "never"}}}
	})))
	admin := w.as("")
	expect(t, admin.apply(configuration("", "")), "never")
	namespaces := w.kubernetes().CoreV1().Namespaces()
	label := func(value string) {
		t.Helper()
		if _, err := namespaces.Patch(t.Context(), w.Namespace, types.MergePatchType,
			[]byte(`{"metadata":{"labels":{"akri.sh/admission":`+value+`}}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	label(`"skip"`)
	w.Eventually("it is admitted", func() string {
		if err := admin.apply(configuration("", "")); err != nil {
			return err.Error()
		}
		return ""
	})
	label("null")
	tries := 1
	w.Eventually("it is reviewed again", func() string {
		tries++
		if admin.apply(fmt.Sprintf("%s  capacity: %d\n", configuration("", ""), tries)) == nil {
			return "admitted"
		}
		return ""
	})
}

// The webhook responds in time even if a dry run does not.
func TestSlowness(t *testing.T) {
	w := newWorld(t)
	slow := make(chan struct{})
	t.Cleanup(func() { close(slow) })
	// Another webhook that is slow for each Pod.
	w.register(w.otherWebhook("pods", func(http.ResponseWriter, *http.Request) { <-slow }))
	chain, err := NewChain(w.options)
	if err != nil {
		t.Fatal(err)
	}
	w.serve(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		query.Set("timeout", "2s") // as if it were in the registration
		r.URL.RawQuery = query.Encode()
		Handler(chain).ServeHTTP(rw, r)
	}))
	admin := w.as("")
	began := time.Now()
	expect(t, admin.apply(configuration(aPod, "")), "")
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the response took %v", took)
	}
	if warnings := admin.warnings.take(); !strings.Contains(warnings, "no time left") {
		t.Errorf("warned: %q", warnings)
	}
}

// A panic denies the request, and the next request is reviewed.
func TestPanic(t *testing.T) {
	w := newWorld(t)
	calls := 0
	w.serve(handlerFor(reviewFunc(func(context.Context, admissionRequest) []Finding {
		if calls++; calls == 1 {
			panic("secret of the program")
		}
		return nil
	})))
	admin := w.as("")
	err := admin.apply(configuration("", ""))
	expect(t, err, "failed internally")
	if strings.Contains(err.Error(), "secret of the program") {
		t.Errorf("the panic is shown: %v", err)
	}
	expect(t, admin.apply(configuration("", "")), "")
}

const thing = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.late.example}
spec:
  group: late.example
  scope: Namespaced
  names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
`

// A Configuration may be created before its kinds are installed.
func TestKindInstalledAfterTheConfiguration(t *testing.T) {
	w := newWorld(t)
	w.guard()
	admin := w.as("")
	text := configuration(`{apiVersion: late.example/v1, kind: Thing, metadata: {name: "{{ INSTANCE_NAME }}"}, spec: {size: "{{ `+
		`CAPACITY }}"}}`, "")
	expect(t, admin.apply(text), "")
	if warnings := admin.warnings.take(); !strings.Contains(warnings, `no kind "Thing"`) {
		t.Errorf("warned: %q", warnings)
	}
	definitions := admin.api.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"})
	if _, err := definitions.Create(t.Context(), decode(t, thing), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := definitions.Delete(background, "things.late.example", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	w.options.Mapper.(*kinds.Mapper).Changed("late.example") // as the process does, which watches the definitions
	wrong := strings.Replace(text, `"{{ CAPACITY }}"`, `"{{ INSTANCE_NAME }}"`, 1)
	tries := 0
	w.Eventually("the kind is known", func() string {
		tries++
		err := admin.apply(fmt.Sprintf("%s  capacity: %d\n", wrong, tries))
		if err == nil {
			return admin.warnings.take()
		}
		expect(t, err, `spec.instanceBrokerResources[0].spec.size: "{{ INSTANCE_NAME }}" gives the string`)
		return ""
	})
	expect(t, admin.apply(text), "")
}

// Reviewing templates that exhaust their budget takes less processor time than the
// API server's timeout. The handler is called directly: on a busy machine, the API
// server would not wait for it.
func TestHostileTemplates(t *testing.T) {
	w := newWorld(t)
	chain, err := NewChain(w.options)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for i := range 64 {
		list = append(list, fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ INSTANCE_NAME }}-%d"}, data: {k: "{{ range `+
			`until 99 }}{{ range until 99 }}{{ $x := INSTANCE_PROPERTIES.A | repeat 50 | sha256sum | upper | lower | b64enc | b64dec }}{{ end `+
			`}}{{ end }}"}}`, i))
	}
	object, err := decode(t, configuration(strings.Join(list, ", "), "")).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	admin := strings.Replace(question(string(object)), `"somebody"`, `"admin","groups":["system:masters"]`, 1)
	var message string
	took := cputime.Of(func() {
		response := ask(t, Handler(chain), certs.Path+"?timeout=10s", admin)
		if response.Allowed || response.Result == nil {
			t.Fatalf("the response is %+v, want a denial", response)
		}
		message = response.Result.Message
	})
	t.Logf("the response took %v of processor time", took)
	if took > 10*time.Second {
		t.Errorf("the response took %v of processor time", took)
	}
	if !strings.Contains(message, "too much") {
		t.Errorf("denied with %s, want %q in it", message, "too much")
	}
	if strings.Contains(message, "sampleProperties") {
		t.Errorf("no sample would help: %s", message)
	}
}
