package templating_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"akri.sh/akri/templating"
	"akri.sh/akri/templating/internal/budget"
)

// TestTypedErrors checks that callers can distinguish limits from other mistakes.
func TestTypedErrors(t *testing.T) {
	if _, diags := evaluate(t, "{{ range 2000 }}{{ end }}"); !errors.Is(diags.Err(), templating.ErrLimit) {
		t.Errorf("not a limit: %v", diags)
	}
	if _, diags := evaluate(t, "{{ INSTANCE_PROPERTIES.NONE }}"); len(diags) == 0 || errors.Is(diags.Err(), templating.ErrLimit) {
		t.Errorf("a limit, instead of a missing property: %v", diags)
	}
	if (templating.Diagnostics{}).Err() != nil {
		t.Error("no diagnostics are an error")
	}
}

// TestListLimits checks that lists beyond a limit are refused and lists at the limit
// are not.
func TestListLimits(t *testing.T) {
	template := one("{{ NODE }}", map[string]any{"akri.sh/for-each": "NODES"})
	template["metadata"].(map[string]any)["name"] = "x-{{ NODE }}"
	sibling := one("still there", nil)
	set := mustCompile(t, templating.InstanceLevel, []map[string]any{template, sibling})
	for nodes, want := range map[int]int{templating.MaxElements: templating.MaxElements + 1, templating.MaxElements + 1: 1} {
		values := camera
		values.Instance.Nodes = nil
		for i := range nodes {
			values.Instance.Nodes = append(values.Instance.Nodes, fmt.Sprintf("node-%d", i))
		}
		objects, diags := set.Render(values)
		if len(objects) != want || len(diags) > 1 || (len(diags) == 1) != (want == 1) {
			t.Errorf("%d nodes give %d objects and %v; want %d objects", nodes, len(objects), diags, want)
		}
	}
	template = one("{{ INSTANCE.name }}", map[string]any{"akri.sh/for-each": "INSTANCES"})
	template["metadata"].(map[string]any)["name"] = "x-{{ INSTANCE.name }}"
	set = mustCompile(t, templating.ConfigurationLevel, []map[string]any{template, sibling})
	var values templating.Values
	for i := range templating.MaxElements + 1 {
		values.Instances = append(values.Instances, templating.Instance{Name: fmt.Sprintf("cam-%d", i)})
	}
	objects, diags := set.Render(values)
	const remedy = "limited to 1000; write the template in instanceBrokerResources"
	if len(objects) != 1 || len(diags) != 1 || !strings.Contains(diags[0].Error(), remedy) {
		t.Errorf("%d Instances give %d objects and %v; want the sibling and a remedy", len(values.Instances), len(objects), diags)
	}
	many := make([]map[string]any, templating.MaxTemplates+1)
	for i := range many {
		many[i] = map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": fmt.Sprintf("x-%d", i)}}
	}
	if _, diags := templating.Compile(templating.InstanceLevel, many); len(diags) != 1 {
		t.Errorf("%d templates give %v", len(many), diags)
	}
	mustCompile(t, templating.InstanceLevel, many[1:])
}

// TestOneElementFails checks that the other objects are rendered, and that the
// message names the element.
func TestOneElementFails(t *testing.T) {
	template := one(`{{ if eq NODE "node-a" }}{{ INSTANCE_PROPERTIES.NONE }}{{ end }}`, map[string]any{"akri.sh/for-each": "NODES"})
	template["metadata"].(map[string]any)["name"] = "x-{{ NODE }}"
	objects, diags := mustCompile(t, templating.InstanceLevel, []map[string]any{template}).Render(camera)
	if len(objects) != 1 || objects[0].Origin.Element != "node-b" {
		t.Errorf("objects are %v", objects)
	}
	if len(diags) != 1 ||
		diags[0].Origin.String() != "instanceBrokerResources[0] (node-a)" || len(diags.Of(templating.InstanceLevel, 0)) != 1 {
		t.Errorf("diagnostics are %v", diags)
	}
}

// TestNames checks that names are valid whatever the device is called, and that
// another device gets another name.
func TestNames(t *testing.T) {
	check := map[string]func(string) []string{
		"dnsLabel": validation.IsDNS1123Label, "dnsSubdomain": validation.IsDNS1123Subdomain, "labelValue": validation.IsValidLabelValue,
	}
	random := rand.New(rand.NewPCG(1, 2))
	alphabet := []rune("aaabbbAB09-._ /ä:")
	texts := map[string]bool{
		"":                        true,
		"-":                       true,
		".":                       true,
		"a":                       true,
		"A":                       true,
		"a.":                      true,
		strings.Repeat("a", 63):   true,
		strings.Repeat("a", 64):   true,
		strings.Repeat("a.", 200): true,
		strings.Repeat("-", 300):  true,
		"a..b":                    true,
		"a.-b":                    true,
	}
	for range 2000 {
		text := make([]rune, random.IntN(90))
		for i := range text {
			text[i] = alphabet[random.IntN(len(alphabet))]
		}
		texts[string(text)] = true
	}
	for _, f := range allFunctions() {
		valid := check[f.Name]
		if valid == nil {
			continue
		}
		seen := map[string]string{}
		for text := range texts {
			value, err := f.Call(budget.New(), []any{text})
			if err != nil {
				t.Fatalf("%s %q: %v", f.Name, text, err)
			}
			name := value.(string)
			if problems := valid(name); len(problems) > 0 || name == "" && f.Name != "labelValue" {
				t.Errorf("%s %q is %q: %v", f.Name, text, name, problems)
			}
			if other, found := seen[name]; found {
				t.Errorf("%s gives %q for %q and for %q", f.Name, name, text, other)
			}
			seen[name] = text
		}
	}
}

// TestObjectMemory checks that one object cannot take the memory of a thousand, and
// that its failure leaves the other objects of the template their share.
func TestObjectMemory(t *testing.T) {
	const greedy = `{{ if eq NODE "node-a" }}{{ range until 50 }}{{ $x := repeat 200000 "x" }}{{ end }}{{ end }}`
	template := one(greedy, map[string]any{"akri.sh/for-each": "NODES"})
	template["metadata"].(map[string]any)["name"] = "x-{{ NODE }}"
	objects, diags := mustCompile(t, templating.InstanceLevel, []map[string]any{template}).Render(camera)
	if len(objects) != 1 || objects[0].Origin.Element != "node-b" {
		t.Errorf("objects are %v", objects)
	}
	if len(diags) != 1 || !strings.Contains(diags.Error(), "results and intermediate results of one object are limited to 8 MiB") {
		t.Errorf("diagnostics are %v", diags)
	}
}

// TestEach checks that objects are visited in the order of Render, and that their
// memory is known.
func TestEach(t *testing.T) {
	small, large := one("x", nil), one(`{{ repeat 100000 "x" }}`, nil)
	small["metadata"].(map[string]any)["name"] = "small"
	set := mustCompile(t, templating.InstanceLevel, []map[string]any{small, large})
	var visited []templating.Object
	visit := func(object templating.Object) { visited = append(visited, object) }
	if diags := set.Each(camera, visit, nil); len(diags) > 0 || len(visited) != 2 {
		t.Fatalf("visited %v with %v", visited, diags)
	}
	if visited[0].Allocated < 500 || visited[1].Allocated < 100_000 || visited[0].Allocated > visited[1].Allocated/10 {
		t.Errorf("the objects allocated %d and %d bytes", visited[0].Allocated, visited[1].Allocated)
	}
	if set.Each(camera, visit, func() bool { return len(visited) == 3 }); len(visited) != 3 {
		t.Errorf("visited %d objects, want to stop after the first", len(visited)-2)
	}
}
