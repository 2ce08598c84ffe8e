package templating_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"text/template"

	"akri.sh/akri/templating"
	"akri.sh/akri/templating/internal/budget"
)

// The twin is text/template itself. It has no budget and no levels, but texts that
// both accept must give the same result.

// twin renders longer text with text/template.
func twin(source string) (string, error) {
	funcs := template.FuncMap{
		"CAPACITY": func() int64 { return camera.Capacity }, "INSTANCE_NAME": func() string { return camera.Instance.Name },
		"INSTANCE_PROPERTIES": func() map[string]any {
			properties := map[string]any{}
			for key, value := range camera.Instance.Properties {
				properties[key] = value
			}
			return properties
		},
		"NODES": func() []any { return []any{"node-a", "node-b"} },
	}
	for _, f := range allFunctions() {
		switch f.Name {
		case "and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge", "len", "index", "slice", "print", "printf", "urlquery":
			continue // text/template's own
		}
		funcs[f.Name] = func(args ...any) (any, error) {
			for i, arg := range args {
				if n, ok := arg.(int); ok {
					args[i] = int64(n)
				}
			}
			return f.Call(budget.New(), args)
		}
	}
	t, err := template.New("twin").Option("missingkey=error").Funcs(funcs).Parse(source)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = t.Execute(&b, nil)
	return b.String(), err
}

func compareWithTwin(t *testing.T, source string) {
	t.Helper()
	want, err := twin(source)
	got, diags := evaluate(t, source)
	switch {
	case len(diags) > 0 && err == nil:
		t.Errorf("%s\ntext/template gives %q, templating reports %v", source, want, diags)
	case len(diags) == 0 && err != nil:
		t.Errorf("%s\ntemplating gives %q, text/template reports %v", source, got, err)
	case err == nil && got != want:
		t.Errorf("%s\ngot  %q\nwant %q", source, got, want)
	}
}

func TestTwin(t *testing.T) {
	for _, source := range []string{
		"a{{ 1 }}b", "a {{- 1 -}} b", "a{{/* c */}}b", "a{{ `raw` }}{{ 'x' }}{{ 0x1F }}{{ 1_000 }}{{ true }}{{ 1.5 }}",
		`x{{ "a\tbA" }}`, "x{{ $x := 1 }}{{ $x }}{{ $x = 2 }}{{ $x }}", "x{{ if 0 }}a{{ else if 1 }}b{{ else }}c{{ end }}",
		"x{{ with 0 }}a{{ else with 2 }}{{ . }}{{ else }}c{{ end }}", "x{{ with $x := 5 }}{{ $x }}{{ . }}{{ end }}",
		"x{{ range NODES }}{{ . }},{{ else }}none{{ end }}", "x{{ range list }}{{ . }}{{ else }}none{{ end }}",
		"x{{ range $i, $e := NODES }}{{ $i }}{{ $e }}{{ end }}", "x{{ range $e := NODES }}{{ $e }}{{ end }}",
		"x{{ range 3 }}{{ . }}{{ end }}", "x{{ range NODES }}{{ if CAPACITY }}{{ . }}{{ end }}{{ end }}", "x{{ range $i := 3 }}{{ $i }}{{ end }}",
		"x{{ range $k, $v := dict `b` 1 `a` 2 }}{{ $k }}{{ $v }}{{ end }}", "x{{ range dict `b` 1 `a` 2 }}{{ . }}{{ end }}",
		"x{{ range 5 }}{{ if eq . 1 }}{{ continue }}{{ end }}{{ if eq . 3 }}{{ break }}{{ end }}{{ . }}{{ end }}",
		"x{{ range $i, $e := NODES }}{{ range $j, $e := list 1 2 }}{{ $i }}{{ $j }}{{ $e }}{{ end }}{{ $e }}{{ end }}",
		"x{{ $x := 1 }}{{ if true }}{{ $x := 2 }}{{ $x }}{{ end }}{{ $x }}", "x{{ $x := 1 }}{{ if true }}{{ $x = 2 }}{{ end }}{{ $x }}",
		"x{{ $x := 0 }}{{ range list 1 2 }}{{ $x = add $x . }}{{ end }}{{ $x }}",
		"x{{ and 1 0 2 }}{{ and 1 2 }}{{ or 0 `` 3 }}{{ or 0 `` }}{{ not 1 }}", "x{{ and 0 (index NODES 9) }}",
		"x{{ eq 1 2 1 }}{{ ne 1 2 }}{{ lt 1 2 }}{{ le 2 2 }}{{ gt `b` `a` }}{{ ge 1 2 }}",
		"x{{ len NODES }}{{ len `äö` }}{{ len (dict `a` 1) }}", "x{{ index NODES 1 }}{{ index (dict `a` (list 1 2)) `a` 1 }}",
		"x{{ INSTANCE_PROPERTIES.IP }}", "x{{ INSTANCE_PROPERTIES.NONE }}", "x{{ (dict `a` (dict `b` 1)).a.b }}",
		"x{{ with dict `a` 1 }}{{ .a }}{{ end }}", "x{{ $d := dict `a` 1 }}{{ $d.a }}", "x{{ 1 | add 2 | print }}",
		"x{{ print 1 2 `a` 3 4 }}", "x{{ printf `%d-%s-%5.2f-%-4d|%04d|%+d|%x|%q|%v|%t|%%` 1 `a` 1.5 2 3 4 255 `q` `v` true }}",
		"x{{ slice `abcdef` 1 3 }}", "x{{ urlquery `a b` }}", "x{{ if NODES }}a{{ end }}{{ if dict }}b{{ end }}{{ if `` }}c{{ end }}",
		"x{{ $x }}", "x{{ end }}", "x{{ if }}", "x{{ nil }}", "x{{ 1 2 }}", "x{{ NODES.a }}", "x{{ index NODES 5 }}", "x{{ eq 1 `1` }}",
		"x{{ break }}", "x{{ range 2 }}{{ $x := . }}{{ end }}{{ $x }}", "{{- 1 }}\n{{ 2 -}}\n ", "a{{- /* c */ -}} b",
	} {
		compareWithTwin(t, source)
	}
}

// TestTwinAtRandom compares random programs. A failure prints the seed: add it to
// the list.
func TestTwinAtRandom(t *testing.T) {
	for _, seed := range []uint64{1, 2, 3, 4} {
		g := &generator{random: rand.New(rand.NewPCG(seed, 0))}
		for range 250 {
			source := "x" + g.block(2, 0, false)
			if len(source) > templating.MaxExpressionBytes {
				continue // a limit that the twin does not have
			}
			compareWithTwin(t, source)
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	}
}

// generator generates programs with $variables v0, v1, …, all of them whole numbers.
type generator struct{ random *rand.Rand }

func (g *generator) pick(choices ...string) string { return choices[g.random.IntN(len(choices))] }

func (g *generator) block(depth, variables int, inRange bool) string {
	var b strings.Builder
	for range 1 + g.random.IntN(4) {
		text, declared := g.statement(depth, variables, inRange)
		b.WriteString(text)
		variables += declared
	}
	return b.String()
}

func (g *generator) statement(depth, variables int, inRange bool) (text string, declared int) {
	if depth > 0 {
		inner := func(more int, inRange bool) string { return g.block(depth-1, variables+more, inRange) }
		switch g.random.IntN(8) {
		case 0:
			return fmt.Sprintf("{{ if %s }}%s{{ else }}%s{{ end }}", g.number(2, variables), inner(0, inRange), inner(0, inRange)), 0
		case 1:
			return fmt.Sprintf(
				"{{ if %s }}%s{{ else if %s }}%s{{ end }}",
				g.condition(variables),
				inner(0, inRange),
				g.condition(variables),
				inner(0, inRange),
			), 0
		case 2:
			return fmt.Sprintf(
				"{{ with $v%d := %s }}{{ . }}%s{{ else }}%s{{ end }}",
				variables,
				g.number(2, variables),
				inner(1, inRange),
				inner(1, inRange),
			), 0
		case 3:
			return fmt.Sprintf(
				"{{ range $v%d := %s }}%s{{ else }}%s{{ end }}",
				variables,
				g.pick("3", "0", "list 1 2", "until 2"),
				inner(1, true),
				inner(1, inRange),
			), 0
		case 4:
			return fmt.Sprintf("{{ range $v%d, $v%d := list 5 6 }}{{ . }}%s{{ end }}", variables, variables+1, inner(2, true)), 0
		}
	}
	switch g.random.IntN(6) {
	case 0:
		return fmt.Sprintf("{{ $v%d := %s }}", variables, g.number(2, variables)), 1
	case 1:
		if variables > 0 {
			return fmt.Sprintf("{{ $v%d = %s }}", g.random.IntN(variables), g.number(2, variables)), 0
		}
	case 2:
		if inRange {
			return fmt.Sprintf("{{ if %s }}{{ %s }}{{ end }}", g.condition(variables), g.pick("break", "continue")), 0
		}
	case 3:
		return g.pick(" a", "b ", "\n", " {{- 1 -}} ", "{{/* c */}}", "{{ NODES | join `-` }}"), 0
	}
	return fmt.Sprintf("{{ %s }}", g.number(3, variables)), 0
}

func (g *generator) number(depth, variables int) string {
	if depth == 0 || g.random.IntN(3) == 0 {
		if variables > 0 && g.random.IntN(2) == 0 {
			return fmt.Sprintf("$v%d", g.random.IntN(variables))
		}
		return g.pick("0", "1", "-7", "CAPACITY", "(len NODES)")
	}
	a, b := g.number(depth-1, variables), g.number(depth-1, variables)
	return fmt.Sprintf(
		g.pick("(add %s %s)", "(sub %s %s)", "(or %s %s)", "(and %s %s)", "(max %s %s)", "(%s | add %s)", "(%s | default %s)"),
		a,
		b,
	)
}

func (g *generator) condition(variables int) string {
	return fmt.Sprintf(
		g.pick("eq %s %s", "lt %s %s", "ge %s %s", "and (gt %s 0) (ne %s 1)", "not (or %s %s)"),
		g.number(1, variables),
		g.number(1, variables),
	)
}
