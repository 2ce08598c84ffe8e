package schema

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"akri.sh/akri/config/crd"
	"sigs.k8s.io/yaml"
)

// TestKeywords: a keyword of our definitions that this package does not know would
// be a mistake that nobody is told.
func TestKeywords(t *testing.T) {
	known := []string{
		"type", "format", "pattern", "enum", "nullable", "required", "properties", "additionalProperties", "items",
		"minimum", "maximum", "minLength", "maxLength", "maxItems", "maxProperties",
		"x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations", "x-kubernetes-int-or-string",
		"description", "default", // they refuse nothing
		"x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type", // merging; a set of nodes is written by agents
	}
	var visit func(map[string]any)
	visit = func(n map[string]any) {
		for key, value := range n {
			if key == "anyOf" && n["x-kubernetes-int-or-string"] == true {
				continue // it says the same
			}
			if !slices.Contains(known, key) {
				t.Errorf("the keyword %s is not checked: teach it to node and checker", key)
			}
			child, _ := value.(map[string]any)
			switch key {
			case "properties":
				for _, property := range child {
					visit(property.(map[string]any))
				}
			case "items", "additionalProperties":
				visit(child)
			}
		}
	}
	for _, data := range [][]byte{crd.Configurations, crd.Instances} {
		var definition struct {
			Spec struct {
				Versions []struct {
					Schema struct {
						OpenAPIV3Schema map[string]any `json:"openAPIV3Schema"`
					} `json:"schema"`
				} `json:"versions"`
			} `json:"spec"`
		}
		if err := yaml.Unmarshal(data, &definition); err != nil || len(definition.Spec.Versions) == 0 {
			t.Fatalf("no versions: %v", err)
		}
		for _, version := range definition.Spec.Versions {
			visit(version.Schema.OpenAPIV3Schema)
		}
	}
}

// TestRulesCompile: a rule that does not compile here is never checked.
func TestRulesCompile(t *testing.T) {
	rules := 0
	var visit func(*node)
	visit = func(n *node) {
		if n == nil {
			return
		}
		for _, r := range n.Rules {
			rules++
			if !strings.Contains(r.Rule, "oldSelf") && compiled(r.Rule) == nil {
				t.Errorf("the rule does not compile: %s", r.Rule)
			}
			if r.Message == "" {
				t.Errorf("the rule has no message: %s", r.Rule)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(n.Properties)) {
			visit(n.Properties[name])
		}
		visit(n.Items)
		visit(n.AdditionalProperties)
	}
	for _, k := range kinds() {
		visit(k.schema)
	}
	if rules < 8 {
		t.Errorf("found %d rules only", rules)
	}
}

// TestCheck is about what the scripts of the commands do not show.
func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		object  string
		want    []string // the problems, in order; nil for none
		notOurs bool
	}{
		"all is well":               {object: "{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: a}, spec: {discoveryHandler: {name: b}}}"},
		"null is as good as absent": {object: "{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: a, labels: null}, spec: {discoveryHandler: {name: b, discoveryProperties: null}, capacity: null, brokerSpec: {brokerPodSpec: {}, brokerJobSpec: null}}}"},
		"null is not enough": {object: "{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: a}, spec: {discoveryHandler: null}}",
			want: []string{"spec: discoveryHandler is missing"}},
		"another group's Configuration": {object: "{apiVersion: config.example/v1, kind: Configuration}", notOurs: true},
		"a Pod":                         {object: "{apiVersion: v1, kind: Pod}", notOurs: true},
		"nothing":                       {object: "{}", notOurs: true},
		"a slip in the group":           {object: "{apiVersion: akri.shh/v0, kind: Configuration}", want: []string{`there is no apiVersion "akri.shh/v0"`}},
		"no kind":                       {object: "{apiVersion: akri.sh/v0}", want: []string{"the kind is missing"}},
		"a fraction": {object: "{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: a}, spec: {discoveryHandler: {name: b}, capacity: 1.5}}",
			want: []string{"spec.capacity: this must be a whole number, not 1.5"}},
		"an expression for a number": {object: "{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: a}, spec: {discoveryHandler: {name: b}, capacity: '{{ 1 }}'}}",
			want: []string{"expressions are for broker resources only"}},
		"a dot in the name": {object: "{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: a.b}, spec: {discoveryHandler: {name: b}}}",
			want: []string{"metadata.name: metadata.name must be at most 56 characters"}},
		"the list as a map":    {object: "{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: a}, spec: {discoveryHandler: {name: b}, instanceBrokerResources: x}}", want: []string{"this must be a list, not the text"}},
		"a name with nothing":  {object: "{apiVersion: akri.sh/v0, kind: Configuration, metadata: {}, spec: {discoveryHandler: {name: b}}}", want: []string{"metadata: name is missing"}},
		"a number of devices":  {object: rollout("2")},
		"a part of all":        {object: rollout("25%")},
		"no number of devices": {object: rollout("true"), want: []string{"spec.rollout.maxUnavailable: this must be a whole number or text, not true"}},
		"a part of devices":    {object: rollout("1.5"), want: []string{"this must be a whole number or text, not the number 1.5"}},
		"none at all":          {object: rollout("0"), want: []string{"spec.rollout.maxUnavailable: maxUnavailable must be a whole number of at least 1"}},
		"more than all":        {object: rollout("101%"), want: []string{"or a percentage from 1% to 100%"}},
		"a short Instance":     {object: "{apiVersion: akri.sh/v0, kind: Instance, metadata: {name: a}, spec: {nodes: [a]}}"},
		"nodes as text":        {object: "{apiVersion: akri.sh/v0, kind: Instance, metadata: {name: a}, spec: {nodes: a}}", want: []string{"spec.nodes: this must be a list"}},
	} {
		t.Run(name, func(t *testing.T) {
			var object map[string]any
			if err := yaml.Unmarshal([]byte(tc.object), &object); err != nil {
				t.Fatal(err)
			}
			problems, ours := Check(object)
			if ours == tc.notOurs {
				t.Errorf("ours is %v", ours)
			}
			if len(problems) != len(tc.want) {
				t.Fatalf("got %v, want %d problems", problems, len(tc.want))
			}
			for i, problem := range problems {
				if !strings.Contains(problem.String(), tc.want[i]) {
					t.Errorf("got %q, want it to say %q", problem, tc.want[i])
				}
			}
		})
	}
}

func rollout(maxUnavailable string) string {
	return "{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: a}, spec: {discoveryHandler: {name: b}, rollout: {maxUnavailable: " + maxUnavailable + "}}}"
}

// TestTooMany: bounds of lists and maps.
func TestTooMany(t *testing.T) {
	templates := make([]any, 65)
	for i := range templates {
		templates[i] = map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}
	}
	object := map[string]any{"apiVersion": "akri.sh/v0", "kind": "Configuration", "metadata": map[string]any{"name": "a"},
		"spec": map[string]any{"discoveryHandler": map[string]any{"name": strings.Repeat("a", 254)}, "instanceBrokerResources": templates}}
	problems, _ := Check(object)
	if len(problems) != 2 || !strings.Contains(problems[0].Cause, "254 characters") || !strings.Contains(problems[1].Cause, "65 elements") {
		t.Errorf("got %v", problems)
	}
}

// TestAgreesWithTheDefinition: what this package accepts, and refuses, is what a
// validator of OpenAPI schemas does. Unknown fields and rules are left out of the
// comparison, since that validator does not look at them.
func TestAgreesWithTheDefinition(t *testing.T) {
	validate := openAPI(t)
	base := "{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: a}, spec: {discoveryHandler: {name: b}"
	values := []string{"1", "0", "-1", "1001", "1.5", "true", "text", "''", "[]", "[a]", "[{}]", "[1]", "{}", "{a: b}", "{a: 1}", "{name: x}", "[{name: x}]", "[{name: 1x}]",
		"{maxUnavailable: 1}", "{maxUnavailable: text}", "{maxUnavailable: 1.5}", "{maxUnavailable: true}", "{maxUnavailable: []}",
		"[{apiVersion: v1, kind: A, metadata: {name: b}}]", "[{apiVersion: 'v{1}', kind: A, metadata: {name: b}}]", "[{apiVersion: v1, kind: '', metadata: {name: b}}]",
		"[{apiVersion: v1, kind: A, metadata: {}}]", "[{apiVersion: v1, metadata: {name: b}}]", "[{apiVersion: v1, kind: A, metadata: {name: b, namespace: '{{x}}'}}]",
		"{name: b, discoveryProperties: [{name: x, value: 1}]}", "{name: b, discoveryProperties: [{name: x, valueFrom: {secretKeyRef: {name: s}}}]}",
		"{name: b, discoveryProperties: [{name: x, valueFrom: {secretKeyRef: {name: s, key: k, optional: 'yes'}}}]}",
		"{brokerPodSpec: 1}", "{brokerPodSpec: {anything: [goes]}}"}
	spec := kinds()[0].schema.Properties["spec"]
	for _, field := range slices.Sorted(maps.Keys(spec.Properties)) {
		for _, value := range values {
			text := base + ", " + field + ": " + value + "}}"
			if field == "discoveryHandler" {
				text = strings.Replace(base, "{name: b}", value, 1) + "}}"
			}
			var object map[string]any
			if err := yaml.Unmarshal([]byte(text), &object); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			problems, _ := Check(object)
			problems = slices.DeleteFunc(problems, func(p Problem) bool { return p.OfKey || isRule(p) })
			if refused := validate(object); (len(problems) > 0) != (refused != "") {
				t.Errorf("%s\n  here:      %v\n  validator: %s", text, problems, refused)
			}
		}
	}
}

// isRule tells what a rule in CEL says.
func isRule(p Problem) bool {
	return slices.ContainsFunc([]string{"set ", "exclude", "generateName", "status is", "maxUnavailable must be"}, func(words string) bool { return strings.Contains(p.Cause, words) })
}
