package templating_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"akri.sh/akri/templating"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// fuzzTime is how long anything may take while fuzzers share the processors.
const fuzzTime = 3 * time.Second

// FuzzRender renders one expression, one key and one property of somebody's
// choice. Nothing may panic, take long, differ from run to run, share memory,
// turn a property into a structure or put it into a message.
func FuzzRender(f *testing.F) {
	f.Add("{{ INSTANCE_PROPERTIES.P }}", "{{ INSTANCE_PROPERTIES.P }}", "value", false)
	f.Add("{{ NODE }}", "k", `{"a": 1}`, true)
	f.Fuzz(func(t *testing.T, expression, key, property string, forEach bool) {
		var annotations map[string]any
		if forEach {
			annotations = map[string]any{"akri.sh/for-each": "NODES"}
		}
		template := one(expression, annotations)
		if forEach {
			template["metadata"].(map[string]any)["name"] = "x-{{ NODE }}"
		}
		template["spec"].(map[string]any)[key] = "{{ INSTANCE_PROPERTIES.P }}"
		values := camera
		values.Instance.Properties = map[string]string{"P": property}

		start := time.Now()
		set, diags := templating.Compile(templating.InstanceLevel, []map[string]any{template})
		checkMessages(t, diags)
		if len(diags) > 0 {
			return
		}
		objects, diags := set.Render(values)
		if took := time.Since(start); took > fuzzTime {
			t.Errorf("took %v", took)
		}
		checkMessages(t, diags)
		if secret := property; len(secret) > 8 && !strings.Contains(expression+key+diagnosticWords, secret) && strings.Contains(diags.Error(), secret) {
			t.Errorf("a message holds the value of a property: %v", diags)
		}
		for _, object := range objects {
			checkObject(t, object)
		}
		again, moreDiags := set.Render(values)
		if !reflect.DeepEqual(objects, again) || diags.Error() != moreDiags.Error() {
			t.Error("two renders differ")
		}
	})
}

// diagnosticWords are words of messages that a property may equal by chance.
const diagnosticWords = "instanceBrokerResources INSTANCE_PROPERTIES (node-a) expression"

// FuzzCompile compiles templates of any shape, and renders what compiles.
func FuzzCompile(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"{{ INSTANCE_NAME }}"},"spec":{"a":[1,1.5,true,null,"{{ NODES }}"]}}`))
	f.Add([]byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"x","labels":{"akri.sh/x":"y"},"annotations":{"akri.sh/when":"{{ 1 }}"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var template map[string]any
		if utiljson.Unmarshal(data, &template) != nil {
			return
		}
		before, _ := json.Marshal(template)
		for _, level := range []templating.Level{templating.InstanceLevel, templating.ConfigurationLevel} {
			start := time.Now()
			set, diags := templating.Compile(level, []map[string]any{template, template})
			checkMessages(t, diags)
			if (set == nil) != (len(diags) > 0) {
				t.Error("a Set beside diagnostics, or neither")
			}
			values := camera
			values.Instances = []templating.Instance{camera.Instance}
			objects, diags := set.Render(values)
			checkMessages(t, diags)
			for _, object := range objects {
				checkObject(t, object)
			}
			if took := time.Since(start); took > fuzzTime {
				t.Errorf("took %v", took)
			}
		}
		if after, _ := json.Marshal(template); string(after) != string(before) {
			t.Errorf("the input changed from %s to %s", before, after)
		}
	})
}

func checkMessages(t *testing.T, diags templating.Diagnostics) {
	t.Helper()
	if len(diags) > 200 {
		t.Errorf("%d diagnostics", len(diags))
	}
	for _, d := range diags {
		text := d.Error()
		if len(text) > 3000 || strings.ContainsAny(text, "\n\x00") || !utf8.ValidString(text) {
			t.Errorf("a message that cannot be shown: %.300q", text)
		}
		for _, word := range []string{"template:", "executing", "interface {}", "reflect", "nil pointer", "runtime error", "%!"} {
			if strings.Contains(d.Cause.Error(), word) && !strings.Contains(d.Text, word) {
				t.Errorf("a message about Go and not about the template: %s", text)
			}
		}
	}
}

func checkObject(t *testing.T, object templating.Object) {
	t.Helper()
	if !reflect.DeepEqual(runtime.DeepCopyJSON(object.Content), object.Content) {
		t.Errorf("not JSON: %v", object.Content)
	}
	data, err := json.Marshal(object.Content)
	if err != nil || len(data) > 8*templating.MaxObjectBytes {
		t.Errorf("%d bytes of JSON, %v", len(data), err)
	}
	metadata := object.Content["metadata"].(map[string]any)
	if name, _ := metadata["name"].(string); name == "" {
		t.Error("no name")
	}
	labels := metadata["labels"].(map[string]any)
	if labels["app.kubernetes.io/managed-by"] != "akri" || labels["akri.sh/configuration"] != "cam" {
		t.Errorf("labels are %v", labels)
	}
	annotations, _ := metadata["annotations"].(map[string]any)
	for key := range annotations {
		if strings.HasPrefix(key, "akri.sh/") {
			t.Errorf("annotation %s", key)
		}
	}
	if object.Content["status"] != nil || metadata["generateName"] != nil {
		t.Errorf("forbidden fields: %v", object.Content)
	}
}

// TestCorpus keeps the attacks and the mistakes of testdata/errors in the corpus
// of FuzzRender.
func TestCorpus(t *testing.T) {
	dir := filepath.Join("testdata", "fuzz", "FuzzRender")
	inputs := map[string]string{}
	const longest = 4 << 10 // what fuzzers can still change sensibly
	for name, value := range attacks() {
		if text, is := value.(string); is && len(text) <= longest {
			inputs["attack-"+fileName(name)] = text
		}
	}
	data, err := os.ReadFile("testdata/errors/expressions.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(strings.TrimSpace(string(data)), "\n\n") {
		lines := strings.Split(block, "\n")
		inputs["mistake-"+fileName(lines[0][2:])] = lines[1]
	}
	for _, f := range templating.Functions() {
		inputs["function-"+f.Name] = "{{ " + f.Example + " }}"
	}
	for name, input := range inputs {
		path := filepath.Join(dir, name)
		want := fmt.Sprintf("go test fuzz v1\nstring(%q)\nstring(%q)\nstring(%q)\nbool(%v)\n", input, "k{{ CAPACITY }}", "10.0.0.5", len(name)%2 == 0)
		if *update {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		} else if got, err := os.ReadFile(path); string(got) != want {
			t.Errorf("%s: %v; go test ./templating -update writes it", path, err)
		}
	}
}

func fileName(s string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(s)), "-")
}
