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
	"akri.sh/akri/templating/internal/functions"
)

// TestTypedErrors checks that callers can distinguish limits from missing
// properties.
func TestTypedErrors(t *testing.T) {
	_, diags := evaluate(t, "{{ range 2000 }}{{ end }}")
	if limit, ok := errors.AsType[*templating.LimitError](diags.Err()); !ok || limit.Limit != budget.MaxRange {
		t.Errorf("not a LimitError: %v", diags)
	}
	_, diags = evaluate(t, "{{ INSTANCE_PROPERTIES.NONE }}")
	if missing, ok := errors.AsType[*templating.MissingKeyError](diags.Err()); !ok || missing.Key != "NONE" || !missing.Property {
		t.Errorf("not a MissingKeyError about a property: %v", diags)
	}
	_, diags = evaluate(t, "{{ (dict).none }}")
	if missing, ok := errors.AsType[*templating.MissingKeyError](diags.Err()); !ok || missing.Property {
		t.Errorf("not a MissingKeyError about a map: %v", diags)
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
	if len(diags) != 1 || diags[0].List != "instanceBrokerResources[0] (node-a)" || len(diags.Of(templating.InstanceLevel, 0)) != 1 {
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
	for _, f := range functions.Table() {
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
