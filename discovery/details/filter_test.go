package details_test

import (
	"regexp"
	"strings"
	"testing"

	"akri.sh/akri/discovery/details"
)

func TestFilter(t *testing.T) {
	for name, tc := range map[string]struct {
		text    string
		refused string
		admits  string // of a, ab, b
	}{
		"no filter":    {"", "", "a ab b "},
		"include":      {"filter: {action: Include, items: [a, ab]}", "", "a ab "},
		"by default":   {"filter: {items: [a]}", "", "a "},
		"include none": {"filter: {action: Include, items: []}", "filter.items: empty, so that no device passes; add items, or write", ""},
		"none":         {"filter: {items: []}", "filter.items: empty", ""},
		"wildcards":    {"filter: {items: ['a?']}", "", "ab "},
		"wrong items": {"filter: {items: [a, x1, x2]}",
			`filter.items[1]: "x1" is not a letter; write one` + "\n" + `filter.items[2]: "x2" is not a letter; write one`, ""},
		"exclude":        {"filter: {action: Exclude, items: [a]}", "", "ab b "},
		"exclude none":   {"filter: {action: Exclude, items: []}", "", "a ab b "},
		"lower case":     {"filter: {action: exclude, items: [a]}", `filter.action: want Include or Exclude, not "exclude"`, ""},
		"without a list": {"filter: {action: Exclude}", "filter.items: missing; write a list of values", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var into sample
			err := details.Decode(tc.text, &into)
			if err == nil {
				err = into.Filter.Check("filter", func(item string) (cause, hint string) {
					if strings.HasPrefix(item, "x") {
						return "a letter", "write one"
					}
					return "", ""
				})
			}
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) {
					t.Errorf("got %v, want %q", err, tc.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			admitted := ""
			for _, values := range []string{"a", "ab", "b"} {
				if into.Filter.Admits(details.Glob, values) {
					admitted += values + " "
				}
			}
			if admitted != tc.admits {
				t.Errorf("admits %q, want %q", admitted, tc.admits)
			}
		})
	}
}

// A handler works without the items that no device can have, as long as the filter has others.
func TestIgnored(t *testing.T) {
	for text, want := range map[string]string{ // ignored, then the rest
		"filter: {items: [a, x1, x2]}":                "x1 x2 |",
		"filter: {items: [x1]}":                       "| x1",
		"filter: {action: Exclude, items: [x1]}":      "x1 |",
		"filter: {action: exclude, items: [a, x1]}":   "| action",
		"filter: {items: [a, b]}":                     "|",
		"filter: {items: [a, x1]}\nfilters: {a: [b]}": "x1 | filters",
	} {
		var into sample
		ignored, rest := details.Ignored(details.Decode(text, &into, func() error {
			return into.Filter.Check("filter", func(item string) (cause, hint string) {
				if strings.HasPrefix(item, "x") {
					return "a letter", ""
				}
				return "", ""
			})
		}))
		got := "|"
		if ignored != nil {
			got = ignored.Error() + " |"
		}
		if rest != nil {
			got += " " + rest.Error()
		}
		if words := strings.Join(regexp.MustCompile(`x\d|\||action|filters`).FindAllString(got, -1), " "); words != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
