package templating_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/internal/cputime"
	"akri.sh/akri/internal/fulltest"
	"akri.sh/akri/templating"
)

// Limits for the cost of a hostile template.
const (
	// attackMemory bounds what is really allocated, in bytes.
	attackMemory = 32 << 20
	// attackRatio bounds the processor time, as a multiple of that of a template which
	// spends its budget on passes that do nothing.
	attackRatio = 5
	// attackTemplates bounds the cost of a list, in templates.
	attackTemplates = 5
)

// attacks returns values that try to make a template expensive, endless or fatal.
func attacks() map[string]any {
	doubling := func(start, double string, times int) string {
		return "{{ $a := " + start + " }}" + strings.Repeat("{{ $a = "+double+" }}", times)
	}
	nested := func(depth int) any {
		var v any = "x"
		for range depth {
			v = map[string]any{"a": v}
		}
		return v
	}
	many := func(s string) any { // as many as fit into an object
		var list []any
		long := strings.Repeat(s, (templating.MaxExpressionBytes-100)/len(s))
		for range templating.MaxObjectBytes/len(long) - 1 {
			list = append(list, long)
		}
		return list
	}
	shorts := func(s string) any {
		list := make([]any, templating.MaxObjectBytes/(len(s)+2)-100)
		for i := range list {
			list[i] = s
		}
		return list
	}
	return map[string]any{
		"expressions, as many as fit":      many("{{1}}"),
		"calls, as many as fit":            many("{{list 1 1|len}}"),
		"blocks, as many as fit":           many("{{if 1}}{{end}}"),
		"mistakes, as many as fit":         many("{{x}}"),
		"long mistakes, as many as fit":    many("{{uppercaseTheNameOfThisInstance}}"),
		"syntax mistakes, as many as fit":  many("{{1}}").([]any)[0].(string) + "{{",
		"expressions in one text":          strings.Repeat("{{1}}", templating.MaxExpressionBytes/5),
		"mistakes in one text":             strings.Repeat("{{x}}", templating.MaxExpressionBytes/5),
		"literals in one text":             strings.Repeat("{{``}}x", templating.MaxExpressionBytes/5),
		"mistakes after a long literal":    "{{ print `" + strings.Repeat("a", 200_000) + "`" + strings.Repeat(" b", 2000) + "}}",
		"syntax mistakes in one text":      strings.Repeat("{{``}}x", templating.MaxExpressionBytes/5-1) + "{{.}.}}",
		"quotes that hide expressions":     "{{'}}" + strings.Repeat("{{1}}", 50_000),
		"a comment that hides expressions": "{{/*/'*/}}" + strings.Repeat("{{1}}", 50_000),
		"comments in one text":             strings.Repeat("x{{/*'*/}}", templating.MaxExpressionBytes/5),
		"short texts, as many as fit":      shorts("x"),
		"short expressions":                shorts("{{1}}"),
		"short mistakes":                   shorts("{{x}}"),
		"range over a large integer":       "{{ range 1000000000 }}{{ end }}",
		"range over integers, nested":      "{{ range 1000 }}{{ range 1000 }}{{ range 1000 }}{{ end }}{{ end }}{{ end }}",
		"ten thousand passes of work":      `{{ range 10 }}{{ range 999 }}{{ $x := snakecase (repeat 20000 "aB") }}{{ end }}{{ end }}`,
		"passes that hash":                 `{{ $s := repeat 200000 "x" }}{{ range 9 }}{{ range 999 }}{{ $x := sha512sum $s }}{{ end }}{{ end }}`,
		"passes that call":                 "{{ range 9 }}{{ range 999 }}" + strings.Repeat("{{ $x := default 1 0 }}", 99) + "{{ end }}{{ end }}",
		"passes that compare":              `{{ $l := until 1000 }}{{ range 9 }}{{ range 999 }}{{ $x := has "x" $l }}{{ end }}{{ end }}`,
		"passes that compare with others":  `{{ $l := until 999 }}{{ range 9 }}{{ range 999 }}{{ $x := without $l "x" $l }}{{ end }}{{ end }}`,
		"passes that compare long texts": `{{ $s := repeat 60000 "x" }}{{ $l := list (print $s "a") (print $s "b") }}{{ $c := print $s "c" }}` +
			`{{ range 9 }}{{ range 999 }}{{ $x := has $c $l }}{{ end }}{{ end }}`,
		"passes that hash a list": `{{ $s := repeat 60000 "x" }}{{ $l := list $s $s $s $s $s $s $s $s }}` +
			`{{ range 9 }}{{ range 999 }}{{ $x := uniq $l }}{{ end }}{{ end }}`,
		"passes that omit":  `{{ $m := split "" (repeat 999 "x") }}{{ range 999 }}{{ $x := omit $m "x" }}{{ end }}`,
		"passes that print": `{{ range 9 }}{{ range 999 }}{{ repeat 1000 "x" }}{{ end }}{{ end }}`,
		"passes that keep": `{{ $l := list }}{{ range 9 }}{{ range 999 }}` +
			`{{ $l = append $l (repeat 200000 "x") }}{{ end }}{{ end }}`,
		"a list that grows by one":         `{{ $l := list }}{{ range 9 }}{{ range 999 }}{{ $l = append $l . }}{{ end }}{{ end }}`,
		"a list in a list in a list":       `{{ $l := list }}{{ range 9 }}{{ range 999 }}{{ $l = list $l }}{{ end }}{{ end }}{{ toJson $l }}`,
		"doubling text":                    doubling(`"x"`, "print $a $a", 60) + "{{ $a }}",
		"doubling by printf":               doubling(`"x"`, `printf "%s%s" $a $a`, 60) + "{{ $a }}",
		"doubling by join":                 doubling(`"x"`, `join $a (list $a $a)`, 60) + "{{ $a }}",
		"doubling by replace":              doubling(`"x"`, `replace "x" "xx" $a`, 60) + "{{ $a }}",
		"doubling by cat":                  doubling(`"x"`, `cat $a $a`, 60),
		"doubling by regexReplaceAll":      doubling(`"x"`, `regexReplaceAll "(x)" $a "$1$1$1$1"`, 60),
		"doubling by quote":                doubling("`\\\\`", "quote $a", 60),
		"doubling by JSON":                 doubling("`\\\\`", "toJson $a", 60),
		"doubling by Base64":               doubling(`"x"`, "b64enc $a", 90),
		"doubling by urlquery":             doubling(`"%"`, "urlquery $a", 60),
		"doubling a list":                  doubling(`list 1`, "list $a $a", 60) + "{{ toJson $a }}",
		"doubling a list, joined":          doubling(`list 1`, "concat $a $a", 60) + "{{ $a }}",
		"doubling a map":                   doubling(`dict`, `dict "a" $a "b" $a`, 60) + "{{ toJson $a }}",
		"doubling a map by merge":          doubling(`dict`, `merge (dict "a" $a "b" $a) $a`, 60) + "{{ toJson $a }}",
		"doubling a list that is measured": doubling(`list 1`, "list $a $a", 60) + "{{ join `,` $a }}",
		"a shared tree as value":           `{{ ` + strings.Repeat("list (list 1 ", 1) + strings.Repeat(")", 1) + ` }}`,
		"repeat":                           `{{ repeat 1000000000 "x" }}`,
		"repeat, negative":                 `{{ repeat -1 "x" }}`,
		"repeat, overflow":                 `{{ repeat 9223372036854775807 "xxxxxxxxxxxxxxxx" }}`,
		"repeat to the limit, often":       strings.Repeat(`{{ $x := repeat 262144 "x" }}`, 250),
		"until":                            "{{ until 1000000000 }}",
		"untilStep":                        "{{ untilStep 0 9223372036854775807 9223372036854775806 }}",
		"untilStep of 0":                   "{{ untilStep 0 1 0 }}",
		"until, nested":                    `{{ range until 1000 }}{{ range until 1000 }}{{ end }}{{ end }}`,
		"indent":                           `{{ indent 262144 (repeat 2000 "\n") }}`,
		"nindent of a huge number":         `{{ nindent 9223372036854775807 "x" }}`,
		"wrap":                             `{{ $s := repeat 100000 "x " }}` + strings.Repeat("{{ $x := wrap 1 $s }}", 200),
		"a wide field":                     `{{ printf "%1000000000d" 1 }}`,
		"many wide fields":                 `{{ printf "` + strings.Repeat("%1024d", 700) + `"` + strings.Repeat(" 1", 700) + ` }}`,
		"a high precision":                 `{{ printf "%.1024f" 1.5 }}` + strings.Repeat(`{{ printf "%1024.1024f" 1e300 }}`, 200),
		"a width from an argument":         `{{ printf "%*d" 1000000000 1 }}`,
		"an argument by number":            `{{ printf "%[1000000000]d" 1 }}`,
		"splitting into characters":        `{{ $s := repeat 262144 "x" }}` + strings.Repeat(`{{ $x := splitList "" $s }}`, 100),
		"splitting into a map":             `{{ $s := repeat 200000 "," }}` + strings.Repeat(`{{ $x := split "," $s }}`, 100),
		"chunks of one":                    `{{ $s := splitList "" (repeat 50000 "x") }}` + strings.Repeat(`{{ $x := chunk 1 $s }}`, 100),
		"uniq":                             `{{ $s := splitList "" (repeat 50000 "x") }}` + strings.Repeat(`{{ $x := uniq $s }}`, 100),
		"without": `{{ $s := splitList "" (repeat 50000 "x") }}` + strings.Repeat(
			`{{ $x := without $s 1 2 3 4 5 6 7 8 9 }}`,
			100,
		),
		"sortAlpha":                   `{{ $s := splitList "" (repeat 50000 "xy") }}` + strings.Repeat(`{{ $x := sortAlpha $s }}`, 100),
		"a large regular expression":  `{{ regexMatch "((a{100}){100}){100}" "x" }}`,
		"a larger regular expression": `{{ regexMatch "(` + strings.Repeat(`\\pL`, 150) + `){1000}" "x" }}`,
		"regular expressions, large text": `{{ $s := repeat 262144 "a" }}` +
			strings.Repeat(`{{ $x := regexMatch "(a|aa)*(a|aa)*b" $s }}`, 100),
		"regular expressions, many": `{{ range 9 }}{{ range 999 }}` +
			`{{ $x := regexMatch "(a{1,30}){1,10}b" "aaaaaaaaaaaaaaaaaaaaaaa" }}{{ end }}{{ end }}`,
		"regular expressions, long":       `{{ regexMatch (repeat 4000 "(") "x" }}`,
		"regular expressions, matches":    `{{ $s := repeat 200000 "a" }}` + strings.Repeat(`{{ $x := regexFindAll "a" $s -1 }}`, 100),
		"regular expressions, groups":     `{{ $s := repeat 200000 "a" }}{{ regexReplaceAll "` + strings.Repeat("(a?)", 100) + `" $s "$1" }}`,
		"regular expressions, references": `{{ $s := repeat 60000 "a" }}{{ regexReplaceAll "a+" $s "` + strings.Repeat("$0", 2000) + `" }}`,
		"regular expressions, split":      `{{ $s := repeat 200000 "a" }}` + strings.Repeat(`{{ $x := regexSplit "" $s -1 }}`, 100),
		"semantic versions":               `{{ semverCompare "` + strings.Repeat(">1 || ", 1000) + `>1" "1.2.3" }}`,
		"a semantic version":              `{{ semver (repeat 200000 "1.") }}`,
		"names":                           `{{ $s := repeat 200000 "." }}` + strings.Repeat(`{{ $x := dnsSubdomain $s }}`, 100),
		"paths":                           `{{ $s := repeat 60000 "a/../" }}` + strings.Repeat(`{{ $x := clean $s }}`, 200),
		"words": `{{ $s := repeat 60000 "aB_ " }}` + strings.Repeat(
			`{{ $x := snakecase $s | camelcase | kebabcase | title }}`,
			80,
		),
		"URLs": `{{ $s := printf "http://%s" (repeat 250000 "%41") }}` + strings.Repeat(
			`{{ $x := urlParse $s }}`,
			100,
		),
		"deep parentheses":            "{{ " + strings.Repeat("(", 4000) + "1" + strings.Repeat(")", 4000) + " }}",
		"deep blocks":                 strings.Repeat("{{if 1}}", 800),
		"deep blocks that end":        strings.Repeat("{{if 1}}", 500) + strings.Repeat("{{end}}", 500),
		"deep fields":                 "{{ INSTANCE_PROPERTIES" + strings.Repeat(".a", 3000) + " }}",
		"a deep pipeline":             "{{ 1" + strings.Repeat(" | print", 900) + " }}",
		"many arguments":              "{{ list" + strings.Repeat(" 1", 4000) + " }}",
		"many variables":              strings.Repeat("{{ $a := 1 }}", 600),
		"many keys in messages":       "{{ (dict" + strings.Repeat(` "k" 1`, 1000) + ").none }}",
		"a huge text":                 strings.Repeat("x", 10<<20),
		"a huge expression":           "{{ `" + strings.Repeat("x", 10<<20) + "` }}",
		"a huge number":               "{{ " + strings.Repeat("9", 8000) + " }}",
		"a huge exponent":             "{{ 1e999999999 }}",
		"a number that is not finite": "{{ divf 1 0 }}",
		"the least number":            "{{ div -9223372036854775808 -1 }}",
		"the least number again":      "{{ mod -9223372036854775808 -1 }}{{ mul -9223372036854775808 -1 }}",
		"braces":                      strings.Repeat("{{", 4000),
		"braces, balanced":            strings.Repeat("{{}}", 2000),
		"comments":                    strings.Repeat("{{/* */}}", 900),
		"recursion":                   `{{ define "a" }}{{ template "a" }}{{ end }}{{ template "a" }}`,
		"recursion by block":          `{{ block "a" . }}{{ template "a" }}{{ end }}`,
		"invalid UTF-8":               "{{ \"\xff\xfe\" }}",
		"invalid UTF-8 by escapes":    `{{ "\xff" }}`,
		"invalid UTF-8 as text":       "\xff\xfe",
		"a zero byte":                 "{{ `\x00` }}",
		"deep tree":                   nested(100000),
		"deep list":                   `{{ $l := list }}{{ range 200 }}{{ $l = list $l }}{{ end }}{{ $l }}`,
		"deep value":                  "{{ " + strings.Repeat("list (", 99) + "list" + strings.Repeat(")", 99) + " }}",
		"a wide tree":                 make([]any, 1<<20),
		"keys that collide":           map[string]any{"{{ print `a` }}": 1, "{{ `a` }}": 2, "a": 3},
		"a property as structure":     "{{ INSTANCE_PROPERTIES.JSON }}",
		"a property as key":           map[string]any{"{{ INSTANCE_PROPERTIES.JSON }}": 1},
		"methods":                     "{{ INSTANCE_NAME.String }}",
		"a foreign type":              struct{ A int }{1},
		"a function as value":         func() {},
	}
}

// cost is what it takes to compile and render a list of templates.
type cost struct {
	took         time.Duration // of the processor
	allocated    uint64
	steps, bytes int64 // paid for from the budget, not counting compilation
	objects      int
	diags        templating.Diagnostics
}

func costOf(templates ...map[string]any) (c cost) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c.took = cputime.Of(func() {
		var set *templating.Set
		if set, c.diags = templating.Compile(templating.InstanceLevel, templates); len(c.diags) == 0 {
			var objects []templating.Object
			objects, c.diags, c.steps, c.bytes = set.RenderCounting(hostile)
			c.objects = len(objects)
		}
	})
	runtime.ReadMemStats(&after)
	c.allocated = after.TotalAlloc - before.TotalAlloc
	return c
}

// TestAttacksInList checks that a whole list of attacks costs at most a few times the
// budget of one, and that a harmless template among them is rendered.
func TestAttacksInList(t *testing.T) {
	values := attacks()
	for _, name := range []string{"range over integers, nested", "doubling a map by merge", "splitting into characters",
		"calls, as many as fit", "short mistakes", "a wide tree"} {
		templates := []map[string]any{one("{{ NODES }}", nil)}
		for i := range templating.MaxTemplates - 1 {
			template := one(values[name], map[string]any{"akri.sh/for-each": "NODES"})
			template["metadata"].(map[string]any)["name"] = fmt.Sprintf("x-%d-{{ NODE }}", i)
			templates = append(templates, template)
		}
		c := costOf(templates...)
		if c.allocated > attackTemplates*maxAttackMemory() {
			t.Errorf("%s: %.1f MiB", name, mebibytes(c.allocated))
		}
		if maxTime := attackTemplates * maxAttackTime(t); maxTime > 0 && c.took > maxTime {
			t.Errorf("%s: took %v, more than %v", name, c.took, maxTime)
		}
		t.Logf("%s: took %v and %.1f MiB, %d diagnostics", name, c.took, mebibytes(c.allocated), len(c.diags))
		if len(c.diags) == 0 ||
			c.objects == 0 && !strings.Contains(name, "fit") && !strings.Contains(name, "short") && !strings.Contains(name, "wide") {
			t.Errorf("%s: %d objects, %d diagnostics", name, c.objects, len(c.diags))
		}
	}
}

func mebibytes(bytes uint64) float64 { return float64(bytes) / (1 << 20) }

// maxAttackMemory returns what one attack may allocate. Under the race detector, where pools drop
// what regular expressions return to them, that is anything.
func maxAttackMemory() uint64 {
	if raceDetector {
		return math.MaxUint64 / attackTemplates
	}
	return attackMemory
}

// maxAttackTime returns the processor time that one attack may take: a multiple of what
// an honest template takes that spends the same budget, measured here and now. It is 0
// where time is not judged: outside of "make full", and under the race detector.
func maxAttackTime(t *testing.T) time.Duration {
	t.Helper()
	if !fulltest.Enabled() || raceDetector {
		return 0
	}
	best := time.Hour
	for range 3 {
		c := costOf(forEachNode(attacks()["range over integers, nested"]))
		if c.steps < 900_000 {
			t.Fatalf("the template that the others are compared with spends only %d steps", c.steps)
		}
		best = min(best, c.took)
	}
	return attackRatio * best
}

// forEachNode returns a template with a value, for an object for each of 1000 nodes.
func forEachNode(value any) map[string]any {
	template := one(value, map[string]any{"akri.sh/for-each": "NODES"})
	template["metadata"].(map[string]any)["name"] = "x-{{ NODE }}"
	return template
}

// hostile are the values of a hostile device.
var hostile = func() templating.Values {
	v := camera
	v.Instance.Properties = map[string]string{
		"JSON":                       `{"hostPath": {"path": "/"}}`,
		"YAML":                       "a: [1]",
		"TEMPLATE":                   "{{ NODES }}",
		"BAD":                        "\xff\xfe\x00",
		"LONG":                       strings.Repeat("x", 1<<20),
		"IP":                         "10.0.0.5",
		"akri.sh/instance":           "x",
		strings.Repeat("key", 10000): "",
	}
	v.Instance.Nodes = nil
	for i := range 1000 {
		v.Instance.Nodes = append(v.Instance.Nodes, fmt.Sprintf("node-%03d", i))
	}
	return v
}()

// TestAttacks checks the cost of every attack, alone and with a for-each over 1000
// nodes. What an attack pays from the budget is compared with testdata/attacks.txt:
// work that is no longer paid for is noticed there, on any machine.
func TestAttacks(t *testing.T) {
	results := map[string]cost{}
	goroutines := runtime.NumGoroutine()
	maxTime := maxAttackTime(t)
	for name, value := range attacks() {
		results[name] = costOf(one(value, nil))
		results[name+", for each node"] = costOf(forEachNode(value))
	}
	for name, c := range results {
		if c.allocated > maxAttackMemory() {
			t.Errorf("%s: %.1f MiB", name, mebibytes(c.allocated))
		}
		if maxTime > 0 && c.took > maxTime {
			t.Errorf("%s: took %v, more than %v", name, c.took, maxTime)
		}
		for _, d := range c.diags {
			if len(d.Error()) > 2000 {
				t.Errorf("%s: a message of %d bytes: %.200s…", name, len(d.Error()), d.Error())
			}
		}
	}
	checkPaid(t, results)
	const shown = 5
	names := slices.Collect(maps.Keys(results))
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(results[b].took, results[a].took) })
	for _, name := range names[:shown] {
		t.Logf("%v: %s", results[name].took, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(results[b].allocated, results[a].allocated) })
	for _, name := range names[:shown] {
		t.Logf("%.1f MiB: %s", mebibytes(results[name].allocated), name)
	}
	if after := runtime.NumGoroutine(); after > goroutines {
		t.Errorf("%d goroutines are left", after-goroutines)
	}
}

// checkPaid compares what attacks paid with testdata/attacks.txt, or writes it with
// -update.
func checkPaid(t *testing.T, results map[string]cost) {
	t.Helper()
	const file = "testdata/attacks.txt"
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(results)) {
		c := results[name]
		lines = append(lines, fmt.Sprintf("%7d steps %8d bytes %4d objects %3d diagnostics: %s", c.steps, c.bytes, c.objects, len(c.diags), name))
	}
	if *update {
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		want[strings.TrimSuffix(line, "\n")] = true
	}
	for _, line := range lines {
		if !want[line] {
			t.Errorf("not in %s (go test ./templating -update rewrites it; read the diff): %s", file, line)
		}
	}
	if len(want) != len(lines) {
		t.Errorf("%s has %d lines, want %d", file, len(want), len(lines))
	}
}
