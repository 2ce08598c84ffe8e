package webhook

import "testing"

func TestExpression(t *testing.T) {
	for text, want := range map[string]string{
		"{{ X }}":           "X",
		"{{- X | int -}}":   "X | int",
		" {{X}} ":           "X",
		"a{{ X }}":          "",
		"{{ X }}{{ Y }}":    "",
		"{{ X }} and {{Y}}": "",
		"plain":             "",
	} {
		if got, _ := expression(text); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
