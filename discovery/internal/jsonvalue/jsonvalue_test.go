package jsonvalue

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"akri.sh/akri/discovery/details"
)

func TestLookup(t *testing.T) {
	const text = `{"info": {"model": "X1", "fw.version": "2", "ports": [{"up": true}, {"speed": 1.50}], "a*": 1, "#": 5},
		"list": [[7]], "none": null, "bad": "a\ud800b` + "\xff" + `", "0": "zero"}`
	document, ok := Parse([]byte(text))
	if !ok {
		t.Fatal("not JSON")
	}
	for path, want := range map[string]string{
		"info.model": "X1", "info.ports.0.up": "true", "info.ports.1.speed": "1.50", "list.0.0": "7", `info.fw\.version`: "2",
		`info.a\*`: "1", `info.\#`: "5", "0": "zero", "bad": "a\uFFFDb\uFFFD",
		"info": "", "none": "", "info.ports.2.up": "", "info.model.x": "", "absent": "", "list.x": "", "info.ports.-1": "",
		"info.ports.up": "", "info.fw.version": "", `list.\#`: "",
	} {
		if err := details.CheckPath("at", "", path); err != nil {
			t.Error(err)
		}
		if got, ok := Text(Lookup(document, path)); got != want || ok != (want != "") {
			t.Errorf("%s is %q, %v; want %q", path, got, ok, want)
		}
	}
	for _, text := range []string{"", "x", `{"a":}`, strings.Repeat("[", 1<<20) + strings.Repeat("]", 1<<20)} {
		if _, ok := Parse([]byte(text)); ok {
			t.Errorf("%.20q is JSON", text)
		}
	}
}

// FuzzLookup checks that what encoding/json writes at any keys is found there, and that
// nothing else makes a lookup panic.
func FuzzLookup(f *testing.F) {
	f.Add("a", "b.c", "d\ne", `{"a": {"b.c": [1, {"d": false}]}}`)
	f.Add("@this", "a|b*", "\u00fc\"", `[{"@this": 1, "#": 3}]`)
	f.Add("#", `\#(a=="b")`, "", "{")
	f.Fuzz(func(t *testing.T, first, second, value, other string) {
		path := Join(first, second, "1", first)
		if details.CheckPath("at", "", path) != nil || !utf8.ValidString(first) || !utf8.ValidString(second) {
			return // an empty key, or one with characters that a Configuration cannot have
		}
		text, err := json.Marshal(map[string]any{first: map[string]any{second: []any{0, map[string]string{first: value}}}, first + second: 1})
		if err != nil {
			t.Fatal(err)
		}
		document, ok := Parse(text)
		if !ok {
			t.Fatalf("%s is not JSON", text)
		}
		want := string([]rune(value)) // encoding/json replaces each byte that is not valid
		if got, ok := Text(Lookup(document, path)); !ok || got != want {
			t.Errorf("%s in %s is %q, %v; want %q", path, text, got, ok, want)
		}
		if document, ok = Parse([]byte(other)); ok {
			if got, _ := Text(Lookup(document, path)); !utf8.ValidString(got) {
				t.Errorf("%s in %s is not valid UTF-8", path, other)
			}
		}
	})
}
