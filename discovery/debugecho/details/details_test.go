package details

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct{ details, want string }{
		"a list":          {"descriptions: [foo0, foo1]", "foo0 foo1"},
		"a list in lines": {"descriptions:\n- foo0\n- \"1\"\n", "foo0 1"},
		"an empty list":   {"descriptions: []", ""},
		"empty details":   {"", "descriptions: missing"},
		"a misspelling":   {"discriptions: [foo0]", "did you mean descriptions?"},
		"an empty string": {"descriptions: [foo0, \"\"]", "descriptions[1]: empty"},
		"a duplicate":     {"descriptions: [foo0, foo0]", "descriptions[1]: repeats"},
	} {
		t.Run(name, func(t *testing.T) {
			texts, err := Parse(tc.details)
			if err != nil {
				if tc.want == "" || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("refused by %q, want %q", err, tc.want)
				}
				return
			}
			if got := strings.Join(texts, " "); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
