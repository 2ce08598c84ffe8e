package schema

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"akri.sh/akri/config/crd"
)

// TestKeywords checks that this package knows all keywords of the definitions. It
// would ignore an unknown one.
func TestKeywords(t *testing.T) {
	known := []string{
		"type", "format", "pattern", "enum", "nullable", "required", "properties", "additionalProperties", "items",
		"minimum", "maximum", "minLength", "maxLength", "maxItems", "maxProperties",
		"x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations", "x-kubernetes-int-or-string",
		"description", "default", // they reject nothing
		"x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type", // about merging; only agents write the one set, nodes
	}
	var visit func(map[string]any)
	visit = func(n map[string]any) {
		for key, value := range n {
			if key == "anyOf" && n["x-kubernetes-int-or-string"] == true {
				continue // the same constraint
			}
			if !slices.Contains(known, key) {
				t.Errorf("keyword %s is not checked: add it to node and checker", key)
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
		var d struct {
			Spec struct {
				Versions []struct {
					Schema struct {
						OpenAPIV3Schema map[string]any `json:"openAPIV3Schema"`
					} `json:"schema"`
				} `json:"versions"`
			} `json:"spec"`
		}
		if err := yaml.Unmarshal(data, &d); err != nil || len(d.Spec.Versions) == 0 {
			t.Fatalf("no versions: %v", err)
		}
		for _, version := range d.Spec.Versions {
			visit(version.Schema.OpenAPIV3Schema)
		}
	}
}

// TestRulesCompile checks that every CEL rule of both definitions compiles, so that
// none is unusable here.
func TestRulesCompile(t *testing.T) {
	rules := 0
	var visit func(value any)
	visit = func(value any) {
		switch v := value.(type) {
		case map[string]any:
			for key, child := range v {
				if key != "x-kubernetes-validations" {
					visit(child)
					continue
				}
				for _, element := range child.([]any) {
					rules++
					fields := element.(map[string]any)
					rule, _ := fields["rule"].(string)
					if _, err := compile(rule); err != nil {
						t.Errorf("rule %q does not compile: %v", rule, err)
					}
					if message, _ := fields["message"].(string); message == "" {
						t.Errorf("rule %q has no message", rule)
					}
				}
			}
		case []any:
			for _, child := range v {
				visit(child)
			}
		}
	}
	for _, data := range [][]byte{crd.Configurations, crd.Instances} {
		var d map[string]any
		if err := yaml.Unmarshal(data, &d); err != nil {
			t.Fatal(err)
		}
		visit(d)
	}
	if rules < 8 {
		t.Errorf("found only %d rules", rules)
	}
}

// TestRuleErrors checks that a rule that cannot be evaluated is reported, unless the
// value has another problem.
func TestRuleErrors(t *testing.T) {
	for name, expression := range map[string]string{
		"syntax error": "self.", "unknown function": "self.isURL()", "missing field": "self.a == 1", "not a bool": "'text'",
	} {
		for _, valid := range []bool{true, false} {
			c := &checker{}
			c.rules(&node{Rules: []celRule{{Rule: expression, Message: "wrong"}}}, map[string]any{}, valid)
			if reported := len(c.problems) == 1 && strings.Contains(c.problems[0].Cause, "cannot be evaluated"); reported != valid {
				t.Errorf("%s, valid %v: got %v", name, valid, c.problems)
			}
		}
	}
}

// TestCheck covers what the scripts of the commands do not.
func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		object  string
		want    []string // part of each problem, in order
		notAkri bool
	}{
		"valid": {object: "{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: a}, spec: {discoveryHandler: {name: b}}}"},
		"null means absent": {object: "{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: a, labels: null}, spec: " +
			"{discoveryHandler: {name: b, discoveryProperties: null}, capacity: null, brokerSpec: {brokerPodSpec: {}, brokerJobSpec: null}}}"},
		"a required field is null": {object: "{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: a}, spec: {discoveryHandler: null}}",
			want: []string{"spec: discoveryHandler is missing"}},
		"another group's Configuration": {object: "{apiVersion: config.example/v1, kind: Configuration}", notAkri: true},
		"a Pod":                         {object: "{apiVersion: v1, kind: Pod}", notAkri: true},
		"an empty object":               {object: "{}", notAkri: true},
		"a misspelled group": {object: "{apiVersion: akri.shh/v0, kind: Configuration}",
			want: []string{`unknown apiVersion "akri.shh/v0"`}},
		"no kind": {object: "{apiVersion: akri.sh/v0}", want: []string{"kind is missing"}},
		"a fraction": {object: "{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: a}, spec: {discoveryHandler: {name: b}, " +
			"capacity: 1.5}}",
			want: []string{"spec.capacity: must be an integer, not 1.5"}},
		"an expression for a number": {object: "{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: a}, spec: {discoveryHandler: " +
			"{name: b}, capacity: '{{ 1 }}'}}",
			want: []string{"expressions are only allowed in broker resources"}},
		"a dot in the name": {object: "{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: a.b}, spec: {discoveryHandler: {name: b}}}",
			want: []string{"metadata.name: metadata.name must consist of at most 56 characters"}},
		"a string for a list": {object: "{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: a}, spec: {discoveryHandler: " +
			"{name: b}, instanceBrokerResources: x}}", want: []string{"must be a list, not the string"}},
		"no name": {object: "{apiVersion: akri.sh/v0, kind: Configuration, metadata: {}, spec: {discoveryHandler: {name: " +
			"b}}}", want: []string{"metadata: name is missing"}},
		"an absolute number": {object: rollout("2")},
		"a percentage":       {object: rollout("25%")},
		"a boolean for a number": {object: rollout("true"),
			want: []string{"spec.rollout.maxUnavailable: must be an integer or a string, not true"}},
		"a fractional number": {object: rollout("1.5"), want: []string{"must be an integer or a string, not the number 1.5"}},
		"zero": {object: rollout("0"),
			want: []string{"spec.rollout.maxUnavailable: maxUnavailable must be an integer of at least 1"}},
		"more than 100%": {object: rollout("101%"), want: []string{"or a percentage from 1% to 100%"}},
		"a property that is too long": {object: "{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: a}, spec: {discoveryHandler: " +
			"{name: b}, brokerProperties: {K: " + strings.Repeat("x", 8193) + "}}}",
			want: []string{"spec.brokerProperties: the name of a property has at most 253 characters, and its value at most 8192"}},
		"properties that are too long together": {object: "{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: a}, spec: " +
			"{discoveryHandler: {name: b}, sampleProperties: {K: " + strings.Repeat("x", 8192) + ", L: " + strings.Repeat("x", 8192) + "}}}",
			want: []string{"at most 16384 characters"}},
		"a short Instance": {object: "{apiVersion: akri.sh/v0, kind: Instance, metadata: {name: a}, spec: {nodes: [a]}}"},
		"nodes as a string": {object: "{apiVersion: akri.sh/v0, kind: Instance, metadata: {name: a}, spec: {nodes: a}}",
			want: []string{"spec.nodes: must be a list"}},
	} {
		t.Run(name, func(t *testing.T) {
			var object map[string]any
			if err := yaml.Unmarshal([]byte(tc.object), &object); err != nil {
				t.Fatal(err)
			}
			problems, isAkri := Check(object)
			if isAkri == tc.notAkri {
				t.Errorf("isAkri is %v", isAkri)
			}
			if len(problems) != len(tc.want) {
				t.Fatalf("got %v, want %d problems", problems, len(tc.want))
			}
			for i, problem := range problems {
				if !strings.Contains(problem.String(), tc.want[i]) {
					t.Errorf("got %q, want %q in it", problem, tc.want[i])
				}
			}
		})
	}
}

func rollout(maxUnavailable string) string {
	return "{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: a}, spec: {discoveryHandler: {name: b}, rollout: " +
		"{maxUnavailable: " + maxUnavailable + "}}}"
}

// TestMaximum checks the limits of strings and lists.
func TestMaximum(t *testing.T) {
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

// TestAgreesWithTheDefinition checks that this package accepts and rejects the same
// objects as a validator of OpenAPI schemas. Unknown fields and rules are not
// compared, because that validator ignores them.
func TestAgreesWithTheDefinition(t *testing.T) {
	validate := openAPI(t)
	base := "{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: a}, spec: {discoveryHandler: {name: b}"
	values := []string{"1", "0", "-1", "1001", "1.5", "true", "text", "''", "[]", "[a]", "[{}]", "[1]", "{}", "{a: b}", "{a: 1}",
		"{name: x}", "[{name: x}]", "[{name: 1x}]",
		"{maxUnavailable: 1}", "{maxUnavailable: text}", "{maxUnavailable: 1.5}", "{maxUnavailable: true}", "{maxUnavailable: []}",
		"[{apiVersion: v1, kind: A, metadata: {name: b}}]", "[{apiVersion: 'v{1}', kind: A, metadata: {name: b}}]",
		"[{apiVersion: v1, kind: '', metadata: {name: b}}]",
		"[{apiVersion: v1, kind: A, metadata: {}}]", "[{apiVersion: v1, metadata: {name: b}}]",
		"[{apiVersion: v1, kind: A, metadata: {name: b, namespace: '{{x}}'}}]",
		"{name: b, discoveryProperties: [{name: x, value: 1}]}",
		"{name: b, discoveryProperties: [{name: x, valueFrom: {secretKeyRef: {name: s}}}]}",
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
			problems = slices.DeleteFunc(problems, func(p Mistake) bool { return p.OfKey || isRule(p) })
			if rejected := validate(object); (len(problems) > 0) != (rejected != "") {
				t.Errorf("%s\n  here:      %v\n  validator: %s", text, problems, rejected)
			}
		}
	}
}

// isRule reports whether a problem comes from a CEL rule.
func isRule(p Mistake) bool {
	return slices.ContainsFunc([]string{"set ", "mutually exclusive", "generateName", "status is", "maxUnavailable must be"},
		func(words string) bool { return strings.Contains(p.Cause, words) })
}
