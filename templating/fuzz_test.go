package templating_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"akri.sh/akri/internal/cputime"
	"akri.sh/akri/templating"
)

// fuzzTime is the limit of processor time for one input, also under the race
// detector.
const fuzzTime = 3 * time.Second

// FuzzRender renders an arbitrary expression, key and property. Nothing may panic,
// take long, differ from run to run, share memory, turn a property into a structure
// or put it into a message.
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

		var set *templating.Set
		var objects []templating.Object
		var compiling, diags templating.Diagnostics
		took := cputime.Of(func() {
			set, compiling = templating.Compile(templating.InstanceLevel, []map[string]any{template})
			objects, diags = set.Render(values)
		})
		if took > fuzzTime {
			t.Errorf("took %v", took)
		}
		checkMessages(t, compiling, expression+key)
		if len(compiling) > 0 {
			return
		}
		checkMessages(t, diags, expression+key)
		if secret := property; len(secret) > 8 && !strings.Contains(expression+key+diagnosticWords, secret) &&
			strings.Contains(diags.Error(), secret) {
			t.Errorf("a message contains the value of a property: %v", diags)
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

// diagnosticWords are words in messages that a property may equal by chance.
const diagnosticWords = "instanceBrokerResources INSTANCE_PROPERTIES (node-a) expression"

// FuzzCompile compiles templates of any shape, and renders what compiles.
func FuzzCompile(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"{{ INSTANCE_NAME }}"},"spec":{"a":[1,1.5,true,null,"{{ NODES }}"]}}`))
	f.Add(
		[]byte(
			`{"apiVersion":"apps/v1","kind":"Deployment",` +
				`"metadata":{"name":"x","labels":{"akri.sh/x":"y"},"annotations":{"akri.sh/when":"{{ 1 }}"}}}`,
		),
	)
	f.Fuzz(func(t *testing.T, data []byte) {
		var template map[string]any
		if utiljson.Unmarshal(data, &template) != nil {
			return
		}
		before, _ := json.Marshal(template)
		for _, level := range []templating.Level{templating.InstanceLevel, templating.ConfigurationLevel} {
			values := camera
			values.Instances = []templating.Instance{camera.Instance}
			var set *templating.Set
			var objects []templating.Object
			var compiling, diags templating.Diagnostics
			took := cputime.Of(func() {
				set, compiling = templating.Compile(level, []map[string]any{template, template})
				objects, diags = set.Render(values)
			})
			if took > fuzzTime {
				t.Errorf("took %v", took)
			}
			checkMessages(t, compiling, string(data))
			if (set == nil) != (len(compiling) > 0) {
				t.Error("got both a Set and diagnostics, or neither")
			}
			checkMessages(t, diags, string(data))
			for _, object := range objects {
				checkObject(t, object)
			}
		}
		if after, _ := json.Marshal(template); string(after) != string(before) {
			t.Errorf("the input changed from %s to %s", before, after)
		}
	})
}

// checkMessages checks that messages are readable and about the author's input.
func checkMessages(t *testing.T, diags templating.Diagnostics, input string) {
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
			if strings.Contains(d.Cause.Error(), word) && !strings.Contains(input, word) {
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

// TestCorpus checks that the corpora of the fuzzers contain the attacks, the mistakes
// of testdata/errors and the examples of the functions.
func TestCorpus(t *testing.T) {
	const maxBytes = 4 << 10 // fuzzers mutate longer inputs too slowly
	for name, value := range attacks() {
		if text, ok := value.(string); ok && len(text) <= maxBytes {
			seedRender(t, "attack-"+name, text)
		} else if data, err := json.Marshal(one(value, nil)); err == nil && len(data) <= maxBytes {
			seedCompile(t, "attack-"+name, data)
		}
	}
	for _, block := range blocks(t, "expressions.txt") {
		seedRender(t, "mistake-"+block[0][2:], block[1])
	}
	for _, block := range blocks(t, "templates.txt") {
		end := slices.Index(block, "----")
		template, _ := strings.CutPrefix(strings.Join(block[1:end], "\n"), "configuration level\n")
		data, err := yaml.YAMLToJSON([]byte(template))
		if err != nil {
			t.Fatal(err)
		}
		seedCompile(t, "mistake-"+block[0][2:], data)
	}
	for _, f := range allFunctions() {
		seedRender(t, "function-"+f.Name, "{{ "+f.Example+" }}")
	}
}

// blocks returns the lines of each block of a script in testdata/errors.
func blocks(t *testing.T, name string) (all [][]string) {
	data, err := os.ReadFile(filepath.Join("testdata", "errors", name))
	if err != nil {
		t.Fatal(err)
	}
	for block := range strings.SplitSeq(strings.TrimSpace(string(data)), "\n\n") {
		all = append(all, strings.Split(block, "\n"))
	}
	return all
}

func seedRender(t *testing.T, name, expression string) {
	seed(
		t,
		"FuzzRender",
		name,
		fmt.Sprintf("string(%q)\nstring(%q)\nstring(%q)\nbool(%v)\n", expression, "k{{ CAPACITY }}", "10.0.0.5", len(name)%2 == 0),
	)
}

func seedCompile(t *testing.T, name string, template []byte) {
	seed(t, "FuzzCompile", name, fmt.Sprintf("[]byte(%q)\n", template))
}

// seed checks a file of a corpus, or writes it with -update.
func seed(t *testing.T, fuzzer, name, arguments string) {
	want := "go test fuzz v1\n" + arguments
	path := filepath.Join("testdata", "fuzz", fuzzer, fileName(name))
	if !*update {
		if got, err := os.ReadFile(path); string(got) != want {
			t.Errorf("%s: %v; go test ./templating -update writes it", path, err)
		}
		return
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
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
