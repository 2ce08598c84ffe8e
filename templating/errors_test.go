package templating_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"akri.sh/akri/internal/text"
	"akri.sh/akri/templating"
)

// TestErrors runs the scripts of testdata/errors: mistakes of authors and the
// messages they get. A block is a reason after #, the input, ---- and the messages,
// up to an empty line. The input of expressions.txt is one string; that of functions.txt
// and syntax.txt is one string per line, each with its own messages, so that what is just
// accepted is next to what is not; that of templates.txt is a template in YAML, preceded
// by the level.
func TestErrors(t *testing.T) {
	t.Run("expressions", func(t *testing.T) { script(t, "expressions.txt", expressionMessages) })
	t.Run("functions", func(t *testing.T) { script(t, "functions.txt", lineMessages) })
	t.Run("syntax", func(t *testing.T) { script(t, "syntax.txt", lineMessages) })
	t.Run("templates", func(t *testing.T) { script(t, "templates.txt", templateMessages) })
}

func expressionMessages(t *testing.T, input string) string {
	_, diags := evaluate(t, strings.ReplaceAll(input, `\n`, "\n"))
	if len(diags) == 0 {
		return "no error"
	}
	return messages(diags)
}

// lineMessages returns the messages of each line, which quote it. A line that is accepted
// is repeated with its value.
func lineMessages(t *testing.T, input string) string {
	var all []string
	for line := range strings.SplitSeq(input, "\n") {
		value, diags := evaluate(t, line)
		if len(diags) > 0 {
			all = append(all, messages(diags))
			continue
		}
		const maxShown = 60
		all = append(all, line+" is "+text.Truncate(fmt.Sprintf("%v", value), maxShown))
	}
	return strings.Join(all, "\n")
}

func templateMessages(t *testing.T, input string) string {
	level := templating.InstanceLevel
	if rest, found := strings.CutPrefix(input, "configuration level\n"); found {
		level, input = templating.ConfigurationLevel, rest
	}
	var template map[string]any
	if err := yaml.Unmarshal([]byte(input), &template); err != nil {
		return "test: " + err.Error()
	}
	set, diags := templating.Compile(level, []map[string]any{template})
	if len(diags) > 0 {
		return messages(diags)
	}
	values := camera
	values.Instances = []templating.Instance{camera.Instance}
	if _, diags = set.Render(values); len(diags) > 0 {
		return "when rendered\n" + messages(diags)
	}
	return "no error"
}

func messages(diags templating.Diagnostics) string {
	return strings.ReplaceAll(diags.Error(), "instanceBrokerResources[0].spec.it: ", "")
}

func script(t *testing.T, name string, run func(*testing.T, string) string) {
	path := filepath.Join("testdata", "errors", name)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var rewritten strings.Builder
	for i, block := range strings.Split(strings.TrimSpace(string(data)), "\n\n") {
		before, want, _ := strings.Cut(block, "\n----")
		reason, input, found := strings.Cut(before, "\n")
		if !found || !strings.HasPrefix(reason, "# ") {
			t.Fatalf("%s: block %d has no reason:\n%s", path, i, block)
		}
		got := run(t, input)
		if want = strings.TrimSpace(want); got != want && !*update {
			t.Errorf("%s: %s\n%s\ngot  %s\nwant %s", path, reason[2:], input, got, want)
		}
		if strings.Contains(got, "10.0.0.5") && !strings.Contains(input, "10.0.0.5") {
			t.Errorf("%s: a message contains the value of a property: %s", path, got)
		}
		if i > 0 {
			rewritten.WriteByte('\n')
		}
		fmt.Fprintf(&rewritten, "%s\n%s\n----\n%s\n", reason, input, got)
	}
	if *update {
		if err := os.WriteFile(path, []byte(rewritten.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRedact checks that a mistake in a Secret's data can be reported to others than
// its author.
func TestRedact(t *testing.T) {
	for name, written := range map[string]string{
		"a syntax error":      `hunter2{{ "hunter2`,
		"an unknown name":     `{{ hunter2 }}`,
		"a failing function":  `{{ int "hunter2" }}`,
		"a missing property":  `hunter2-{{ INSTANCE_PROPERTIES.HUNTER2 }}`,
		"too large an object": `hunter2{{ range until 50 }}{{ $x := repeat 200000 "hunter2" }}{{ end }}`,
	} {
		t.Run(name, func(t *testing.T) {
			for _, field := range []string{"data", "stringData"} {
				secret := map[string]any{
					"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "s"}, field: map[string]any{"password": written},
				}
				set, diags := templating.Compile(templating.InstanceLevel, []map[string]any{secret})
				if len(diags) == 0 {
					_, diags = set.Render(camera)
				}
				if len(diags) == 0 {
					t.Fatal("no mistake was found")
				}
				for _, d := range diags {
					redacted := d.Redact().Error()
					if strings.Contains(strings.ToLower(redacted), "hunter2") || !strings.Contains(redacted, field+".password: ") {
						t.Errorf("%s\nis redacted to\n%s", d.Error(), redacted)
					}
					if errors.Is(d, templating.ErrLimit) != strings.Contains(redacted, "too much") {
						t.Errorf("a limit is hidden: %s", redacted)
					}
				}
			}
		})
	}
	d := templating.Diagnostic{Text: "x", Cause: errors.New("y")}
	if d.Redact().Error() != d.Error() {
		t.Error("another kind's mistake is redacted")
	}
}
