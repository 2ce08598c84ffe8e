package details_test

import (
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
		"no filter":      {"", "", "a ab b "},
		"include":        {"filter: {action: Include, items: [a, ab]}", "", "a ab "},
		"by default":     {"filter: {items: [a]}", "", "a "},
		"include none":   {"filter: {action: Include, items: []}", "filter.items: empty, so that no device passes; add items, or write", ""},
		"none":           {"filter: {items: []}", "filter.items: empty", ""},
		"wildcards":      {"filter: {items: ['a?']}", "", "ab "},
		"exclude":        {"filter: {action: Exclude, items: [a]}", "", "ab b "},
		"exclude none":   {"filter: {action: Exclude, items: []}", "", "a ab b "},
		"lower case":     {"filter: {action: exclude, items: [a]}", `filter.action: want Include or Exclude, not "exclude"`, ""},
		"without a list": {"filter: {action: Exclude}", "filter.items: missing; write a list of values", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var into sample
			err := details.Decode(tc.text, &into)
			if err == nil {
				err = into.Filter.Check("filter")
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
