package templating_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"akri.sh/akri/templating"
)

// nestedMaps returns maps in maps, with a string in the innermost.
func nestedMaps(depth int) any {
	var v any = "x"
	for range depth {
		v = map[string]any{"a": v}
	}
	return v
}

// nestedLists is nestedMaps for lists.
func nestedLists(depth int) any {
	var v any = "x"
	for range depth {
		v = []any{v}
	}
	return v
}

// TestBounds checks that the value at a limit is accepted, and that the next is refused
// with the limit and the remedy.
func TestBounds(t *testing.T) {
	const (
		place    = "instanceBrokerResources[0]"
		it       = place + ".spec.it: "
		elements = "too much: elements of one range are limited to 1000; use less"
		levels   = "too much: levels of lists and maps are limited to 100; use less"
	)
	for name, tc := range map[string]struct {
		limit int
		value func(n int) any
		want  string // the end of the message
	}{
		"numbers of a range":  {1000, format("x{{ range %d }}{{ end }}"), elements},
		"elements of a range": {1000, format(`x{{ range splitList "" (repeat %d "a") }}{{ end }}`), elements},
		"entries of a range":  {1000, format(`x{{ range split "" (repeat %d "a") }}{{ end }}`), elements},
		"passes of ranges": {
			10_000, func(n int) any {
				return fmt.Sprintf("x{{ range 10 }}{{ range 999 }}{{ end }}{{ end }}{{ range %d }}{{ end }}", n-10_000)
			}, "too much: passes of all ranges in one object are limited to 10000; use less",
		},
		"bytes of expressions in a string": {
			16384, func(n int) any {
				around := strings.Repeat("x", 50<<10)
				return around + "{{1" + strings.Repeat(" ", n-26) + "}}" + around + "{{`" + around + "`}}{{/* it's " + around + "*/}}" +
					"{{\"\\\"}}\"}}2{{1}}{{'}'}}"
			},
			"a string may have 256 KiB, 16 KiB of it in expressions; split it, or use fewer or shorter expressions",
		},
		"parentheses": {
			100, func(n int) any { return "{{ " + strings.Repeat("(", n-1) + "NODES" + strings.Repeat(")", n-1) + " }}" },
			"parentheses and blocks are nested more than 100 deep; use $variables",
		},
		"blocks": {
			100, func(n int) any { return strings.Repeat("{{ if NODES }}", n-1) + "x" + strings.Repeat("{{ end }}", n-1) },
			"if, range and with are nested more than 100 deep; use and, or, or $variables",
		},
		"maps as written":  {98, nestedMaps, "lists and maps are nested more than 100 deep"},
		"lists as written": {98, nestedLists, "lists and maps are nested more than 100 deep"},
		"lists that become a string": {
			100, format("{{ $l := list }}{{ range %d }}{{ $l = list $l }}{{ end }}{{ toJson $l }}"), levels,
		},
		"lists that become the value": {
			100, func(n int) any {
				return "{{ " + strings.Repeat("list (", n-2) + "chunk 1 NODES" + strings.Repeat(")", n-2) + " }}"
			}, levels,
		},
		"maps that become the value": {
			100, func(n int) any {
				return "{{ " + strings.Repeat(`dict "a" (`, n-2) + "chunk 1 NODES" + strings.Repeat(")", n-2) + " }}"
			}, levels,
		},
		"bytes of a regular expression": {
			512, format(`{{ regexMatch (repeat %d "a") "x" }}`), "too much: regular expressions are limited to 512 bytes; use less",
		},
		"instructions of a regular expression": {
			248, format(`{{ regexMatch "a{%d}" "x" }}`),
			"too much: compiled regular expressions are limited to 1000 instructions; use less",
		},
		"bytes of a version": {
			256, func(n int) any { return fmt.Sprintf(`{{ semver (printf "1.2.3-%%s" (repeat %d "a")) }}`, n-6) },
			"the string is not a semantic version; versions are written like 1.2.3",
		},
		"bytes of a range of versions": {
			512, func(n int) any {
				return fmt.Sprintf(`{{ semverCompare (printf "%%s>=1" (repeat %d " ")) "1.2.3" }}`, n-3)
			},
			"too much: ranges of versions are limited to 512 bytes; use less",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, diags := evaluate(t, tc.value(tc.limit)); len(diags) > 0 {
				t.Errorf("%d is refused: %v", tc.limit, diags)
			}
			_, diags := evaluate(t, tc.value(tc.limit+1))
			if message := diags.Error(); !strings.HasPrefix(message, place+".spec.it") || !strings.HasSuffix(message, tc.want) {
				t.Errorf("%d gives\n%s\nwant\n%s…%s", tc.limit+1, message, it, tc.want)
			}
		})
	}
}

func format(text string) func(n int) any { return func(n int) any { return fmt.Sprintf(text, n) } }

// TestObjectSize checks that an object may have just about 256 KiB, as written and as
// rendered, in one piece and in several, and that this is what JSON needs.
func TestObjectSize(t *testing.T) {
	const (
		around = 300 // the rest of the object
		limit  = ": too much: texts and objects are limited to 256 KiB; "
		want   = limit + "produce less text, or split the object"
	)
	for name, value := range map[string]func(n int) any{
		"as written":  func(n int) any { return strings.Repeat("x", n) },
		"an element":  format(`{{ repeat %d "x" }}`),
		"longer text": format(`{{ repeat %d "x" }}y`),
		"in a list":   format(`{{ list (repeat %d "x") }}`),
		"in a map":    format(`{{ dict "a" (repeat %d "x") }}`),
		"as a key":    format(`{{ dict (repeat %d "x") 1 }}`),
		"as a key of the object": func(n int) any {
			return map[string]any{fmt.Sprintf(`{{ repeat %d "x" }}`, n): 1}
		},
	} {
		t.Run(name, func(t *testing.T) {
			accepted, diags := mostAccepted(func(n int) templating.Diagnostics {
				_, diags := evaluate(t, value(n))
				return diags
			})
			if accepted < templating.MaxObjectBytes-around {
				t.Errorf("only %d bytes are accepted", accepted)
			}
			it, _ := evaluate(t, value(accepted))
			data, err := json.Marshal(one(it, nil))
			if err != nil || len(data) > templating.MaxObjectBytes {
				t.Errorf("an object of %d bytes is accepted: %v", len(data), err)
			}
			if !strings.HasSuffix(diags.Error(), want) {
				t.Errorf("%d bytes give %v\nwant %s", accepted+1, diags, want)
			}
		})
	}
}

// TestSourceSize checks that a template may have about 256 KiB of text, keys, elements or
// fields: what can only become too large an object is not compiled.
func TestSourceSize(t *testing.T) {
	const want = "instanceBrokerResources[0]: too much: texts and objects are limited to 256 KiB; split it into several objects"
	for name, tc := range map[string]struct {
		value func(n int) any
		bytes int // that each of n takes
	}{
		"text":     {func(n int) any { return strings.Repeat("x", n) }, 1},
		"a key":    {func(n int) any { return map[string]any{strings.Repeat("x", n): 1} }, 1},
		"elements": {func(n int) any { return make([]any, n) }, 10},
		"fields": {func(n int) any {
			m := make(map[string]any, n)
			for i := range n {
				m[fmt.Sprintf("%06d", i)] = true
			}
			return m
		}, 20},
	} {
		accepted, diags := mostAccepted(func(n int) templating.Diagnostics {
			_, diags := templating.Compile(templating.InstanceLevel, []map[string]any{one(tc.value(n), nil)})
			return diags
		})
		const around = 300 // the rest of the object
		if accepted < (templating.MaxObjectBytes-around)/tc.bytes || diags.Error() != want {
			t.Errorf("%s: %d are accepted, and one more gives %v\nwant %s", name, accepted, diags, want)
		}
	}
}

// mostAccepted returns the largest size that is accepted, and what is said about the next.
func mostAccepted(try func(n int) templating.Diagnostics) (size int, diags templating.Diagnostics) {
	refused := templating.MaxObjectBytes + 1
	for refused-size > 1 {
		middle := (size + refused) / 2
		if len(try(middle)) > 0 {
			refused = middle
		} else {
			size = middle
		}
	}
	return size, try(refused)
}

// mistakes returns a list with mistakes.
func mistakes(n int) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = "{{ unknown }}"
	}
	return list
}

// TestManyMistakes checks that a template has at most 50 diagnostics, and that the next
// says that there are more.
func TestManyMistakes(t *testing.T) {
	const limit = 50
	_, diags := evaluate(t, mistakes(limit))
	if len(diags) != limit || diags[limit-1].Field.String() != "spec.it[49]" {
		t.Errorf("%d mistakes give %d diagnostics: %v", limit, len(diags), diags)
	}
	_, diags = evaluate(t, mistakes(limit+1))
	if len(diags) != limit+1 || diags[limit].Error() != "instanceBrokerResources[0]: there may be more: correct these first" {
		t.Errorf("%d mistakes give %d diagnostics: %v", limit+1, len(diags), diags)
	}
	template := one("{{ INSTANCE_PROPERTIES.NONE }}", map[string]any{"akri.sh/for-each": "NODES"})
	set := mustCompile(t, templating.InstanceLevel, []map[string]any{template})
	for nodes, want := range map[int]string{
		limit:     "",
		limit + 3: "instanceBrokerResources[0]: there are 3 more: correct these first",
	} {
		values := camera
		values.Instance.Nodes = nil
		for i := range nodes {
			values.Instance.Nodes = append(values.Instance.Nodes, fmt.Sprintf("node-%02d", i))
		}
		_, diags = set.Render(values)
		if more := diags[limit:]; len(diags) < limit || more.Error() != want {
			t.Errorf("%d mistakes give %d diagnostics, after the first %d: %q\nwant %q", nodes, len(diags), limit, more.Error(), want)
		}
	}
}

// expressions returns a value whose expressions take at most so many bytes to compile.
func expressions(compiled int) any {
	const each = 1200 + len("{{1}}") + 2*200
	list := make([]any, compiled/each)
	for i := range list {
		list[i] = "{{1}}"
	}
	return list
}

// TestCompiledSize checks the limits of the memory that expressions take when they are
// compiled: of a template and of a list of them.
func TestCompiledSize(t *testing.T) {
	const mebi = 1 << 20
	compile := func(sizes ...int) templating.Diagnostics {
		var templates []map[string]any
		for i, size := range sizes {
			template := one(expressions(size), nil)
			template["metadata"].(map[string]any)["name"] = fmt.Sprint("x", i)
			templates = append(templates, template)
		}
		_, diags := templating.Compile(templating.InstanceLevel, templates)
		return diags
	}
	const (
		one = "too much: expressions in one template are limited to 8 MiB when compiled; split it into several templates"
		all = "too much: expressions in all templates of a list are limited to 16 MiB when compiled; " +
			"split the list among several Configurations"
	)
	for name, tc := range map[string]struct {
		sizes []int
		want  string
	}{
		"just below":                        {[]int{8*mebi - 5000}, ""},
		"just above":                        {[]int{8*mebi + 5000}, "instanceBrokerResources[0]: " + one},
		"two just below":                    {[]int{8*mebi - 5000, 8*mebi - 5000}, ""},
		"a small one after two":             {[]int{8*mebi - 5000, 8*mebi - 5000, 100_000}, "instanceBrokerResources[2]: " + all},
		"three that fill the list":          {[]int{5 * mebi, 5 * mebi, 6*mebi - 5000}, ""},
		"three that are more than the list": {[]int{5 * mebi, 5 * mebi, 6*mebi + 5000}, "instanceBrokerResources[2]: " + all},
	} {
		if got := compile(tc.sizes...).Error(); got != tc.want {
			t.Errorf("%s: got %q\nwant %q", name, got, tc.want)
		}
	}
}

// TestCountsInMessages checks the messages of the limits on a list of templates and on
// the objects of for-each; TestListLimits checks their effect.
func TestCountsInMessages(t *testing.T) {
	many := make([]map[string]any, templating.MaxTemplates+1)
	_, diags := templating.Compile(templating.ConfigurationLevel, many)
	want := "configurationBrokerResources: too much: templates in one list are limited to 64; " +
		"split the devices or the objects among several Configurations"
	if diags.Error() != want {
		t.Errorf("got %v\nwant %s", diags, want)
	}
	set := mustCompile(t, templating.InstanceLevel, []map[string]any{one(1, map[string]any{"akri.sh/for-each": "NODES"})})
	values := camera
	values.Instance.Nodes = make([]string, templating.MaxElements+1)
	for i := range values.Instance.Nodes {
		values.Instance.Nodes[i] = fmt.Sprint("node-", i)
	}
	_, diags = set.Render(values)
	want = `instanceBrokerResources[0].metadata.annotations["akri.sh/for-each"]: too much: objects created by one for-each ` +
		"are limited to 1000; split the devices among several Configurations"
	if diags.Error() != want {
		t.Errorf("got %v\nwant %s", diags, want)
	}
}

// TestSpentList checks that a template after others that use up the budget of the list is
// told so.
func TestSpentList(t *testing.T) {
	var templates []map[string]any
	for range 4 {
		templates = append(templates, forEachNode(attacks()["range over integers, nested"]))
	}
	set := mustCompile(t, templating.InstanceLevel, append(templates, one("{{ NAMESPACE }}", nil)))
	_, diags := set.Render(hostile)
	const want = "too much: evaluation steps of all templates in a list are limited to 4000000; " +
		"reduce the work of the templates before this one, or split the list among several Configurations"
	if last := diags[len(diags)-1]; last.Origin.Index != 4 || !strings.HasSuffix(last.Error(), want) {
		t.Errorf("got %v\nwant %s", last, want)
	}
}

// TestForeignValues checks values that no JSON or YAML decodes to.
func TestForeignValues(t *testing.T) {
	for name, tc := range map[string]struct {
		value any
		want  string
	}{
		"not a number":           {math.NaN(), "spec.it: the number is not finite"},
		"infinite":               {math.Inf(-1), "spec.it: the number is not finite"},
		"a large number":         {uint64(math.MaxInt64), ""},
		"too large a number":     {uint64(math.MaxInt64) + 1, "spec.it: the result does not fit into 64 bits"},
		"an infinite float32":    {float32(math.Inf(1)), "spec.it: the number is not finite"},
		"a number with fraction": {json.Number("1.5"), ""},
		"too large an exponent":  {json.Number("1e999"), "spec.it: the number does not fit into 64 bits"},
		"no number":              {json.Number("x"), "spec.it: the number does not fit into 64 bits"},
		"a structure":            {struct{ A int }{1}, "spec.it: a value of type struct { A int } is not JSON"},
		"invalid UTF-8":          {"a\xff", "spec.it: this is not valid UTF-8; save the file as UTF-8"},
		"an invalid key":         {map[string]any{"\xff": 1}, `spec.it["\xff"]: this key is not valid UTF-8; save the file as UTF-8`},
	} {
		_, diags := evaluate(t, tc.value)
		if got := strings.TrimPrefix(diags.Error(), "instanceBrokerResources[0]."); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
	_, diags := evaluate(t, map[string]any{"a": "b\xff{{ 1 }}", "{{ 1 }}\xff": 1})
	if len(diags) != 2 || strings.Count(diags.Error(), "not valid UTF-8; save the file as UTF-8") != 2 {
		t.Errorf("expressions in invalid UTF-8 give %v", diags)
	}
	_, diags = templating.Compile(templating.InstanceLevel, []map[string]any{one(1, map[string]any{"akri.sh/when": "{{ 1 }}\xff"})})
	if len(diags) != 1 || !strings.HasSuffix(diags.Error(), "this is not valid UTF-8; save the file as UTF-8") {
		t.Errorf("a condition in invalid UTF-8 gives %v", diags)
	}
}

// TestTargetNode checks that a Pod of the old fields has its node as a label, if the name
// of the node fits into one.
func TestTargetNode(t *testing.T) {
	template := one(1, map[string]any{"akri.sh/for-each": "NODES", "akri.sh/legacy-labels": "true"})
	template["apiVersion"], template["kind"] = "v1", "Pod"
	set := mustCompile(t, templating.InstanceLevel, []map[string]any{template})
	for _, length := range []int{63, 64} {
		values := camera
		values.Instance.Nodes = []string{strings.Repeat("n", length)}
		objects, diags := set.Render(values)
		if err := diags.Err(); err != nil {
			t.Fatal(err)
		}
		node, found := textsAt(t, objects[0].Content, "metadata", "labels")["akri.sh/target-node"]
		if found != (length == 63) || found && node != values.Instance.Nodes[0] {
			t.Errorf("a node with a name of %d characters gives the label %q", length, node)
		}
	}
}

// TestPanics checks that a panic is reported as a bug of Akri, and that the other
// templates are still rendered.
func TestPanics(t *testing.T) {
	const remedy = "; this is a bug in Akri: please report it with the template"
	want := "instanceBrokerResources[0]: this template cannot be compiled" + remedy
	if got := templating.CompileBroken(one("{{ NODES }}", nil)).Error(); got != want {
		t.Errorf("compiled: got %q\nwant %q", got, want)
	}
	set := mustCompile(t, templating.InstanceLevel, []map[string]any{one(1, nil), one(2, nil)}).BrokenSet()
	objects, diags := set.Render(camera)
	want = "instanceBrokerResources[0]: this template cannot be rendered" + remedy
	if diags.Error() != want || len(objects) != 1 || objects[0].Origin.Index != 1 {
		t.Errorf("rendered: got %v and %q\nwant the second object and %q", objects, diags.Error(), want)
	}
}
