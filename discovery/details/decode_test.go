package details_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"akri.sh/akri/discovery/details"
)

// sample has a field of each type that Decode supports.
type sample struct {
	embedded

	Text   string            `json:"text"`
	Texts  []string          `json:"texts"`
	Flag   *bool             `json:"flag"`
	Small  int               `json:"small"`
	Map    map[string]string `json:"map"`
	Any    any               `json:"any"`
	Filter *details.Filter   `json:"filter"`
	Deep   []struct {
		Level string `json:"level"`
		Port  int    `json:"port"`
	} `json:"deep"`
	Hidden string `json:"-"`
}

type embedded struct {
	Inner string `json:"inner"`
}

func TestDecode(t *testing.T) {
	into := sample{Text: "default", Small: 7}
	err := details.Decode(`
inner: i
texts: [a, "1"]
flag: false
small: -5
map: {k: v}
any: {x: [1, null]}
filter: {action: Exclude, items: []}
deep:
- {level: high, port: 2}
text: null
`, &into)
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(into)
	const want = `{"inner":"i","text":"default","texts":["a","1"],"flag":false,"small":-5,"map":{"k":"v"},` +
		`"any":{"x":[1,null]},"filter":{"items":[],"action":"Exclude"},"deep":[{"level":"high","port":2}]}`
	if err != nil || string(got) != want {
		t.Errorf("got\n%s, %v, want\n%s", got, err, want)
	}
	for _, empty := range []string{"", "# nothing", "---", "{}", "null"} {
		into := sample{Text: "default"}
		if err := details.Decode(empty, &into); err != nil || into.Text != "default" {
			t.Errorf("%q: %v, %+v", empty, err, into)
		}
	}
}

func TestDecodeFaults(t *testing.T) {
	for name, tc := range map[string]struct {
		text, want   string
		line, column int
	}{
		"a misspelled key":       {"a: 1\n", "a: unknown key; the keys are any, deep, filter,", 1, 1},
		"almost a key":           {"flag: true\nTexts: []\n", "Texts: unknown key; did you mean texts?", 2, 1},
		"a key of a filter":      {"items: [a]", "items: unknown key; write it below filter", 1, 1},
		"a key below a list":     {"deep:\n- port: 1\n- {prot: 2}\n", "deep[1].prot: unknown key; did you mean port?", 3, 4},
		"an embedded type":       {"embedded: {}", "embedded: unknown key", 1, 1},
		"a field without a key":  {"Hidden: x", "Hidden: unknown key", 1, 1},
		"not a list":             {"texts: a", `texts: want a list, not "a"`, 1, 8},
		"an empty element":       {"texts:\n- a\n-\n", "texts[1]: empty; write a value", 3, 2},
		"a number for a text":    {"texts: [a, 1]", "texts[1]: want a string, not 1; put it in quotes", 1, 12},
		"a Boolean for a text":   {"text: yes", "text: want a string, not true; put it in quotes", 1, 7},
		"a list for a text":      {"text: [a]", `text: want a string, not ["a"]`, 1, 7},
		"not a Boolean":          {"flag: 'true'", `flag: want true or false, not "true"`, 1, 7},
		"a fraction":             {"small: 1.5", "small: want an integer, not 1.5", 1, 8},
		"far too large":          {"deep: [{port: 1e300}]", "is out of range", 1, 15},
		"not a map":              {"map: [a]", `map: want a map, not ["a"]`, 1, 6},
		"a map's value":          {"map:\n  a.b[0]: 1", "map.a.b[0]: want a string, not 1", 2, 11},
		"a list":                 {"- a", `want a map, not ["a"]`, 1, 1},
		"a text":                 {"http://10.0.0.1/list", `want a map, not "http://10.0.0.1/list"`, 1, 1},
		"not YAML":               {"text: a\n texts: [", "line 2: not valid YAML: ", 2, 1},
		"a repeated key":         {"text: a\nsmall: 1\ntext: b\n", `line 3: not valid YAML: key "text" already set`, 3, 1},
		"two documents":          {"text: a\n---\ntext: b\n", "more than one YAML document", 1, 1},
		"broken second document": {"text: a\n---\n[\n", "not valid YAML", 3, 1},
		"too long":               {"text: " + strings.Repeat("a", details.MaxBytes), "the limit is 65536", 1, 1},
		"too deep":               {"any:\n  " + strings.Repeat("[", 1000) + strings.Repeat("]", 1000), "nested deeper than 32", 2, 1},
		"an alias bomb":          {aliasBomb(), "the aliases expand to more than 131072 bytes; write the values without anchors", 6, 1},
		"a long text repeated":   {longTextRepeated(), "the aliases expand to more than", 2, 1},
		"an anchor in itself":    {"any: &a\n- *a", "the anchor a contains itself", 2, 1},
		"a terminal's escape":    {"\"\\e[2J\": 1", `\x1b[2J: unknown key`, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			err := details.Decode(tc.text, &sample{})
			fault, ok := errors.AsType[*details.Fault](err)
			if !ok || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want a fault with %q", err, tc.want)
			}
			if len(err.Error()) > 300 {
				t.Errorf("the text has %d bytes", len(err.Error()))
			}
			if line, column := fault.Position(tc.text); line != tc.line || column != tc.column {
				t.Errorf("%v is at %d:%d, want %d:%d", err, line, column, tc.line, tc.column)
			}
		})
	}
}

func aliasBomb() string {
	var b strings.Builder
	b.WriteString("any:\n- &a [1,1,1,1,1,1,1,1,1]\n")
	for c := 'b'; c < 'k'; c++ {
		fmt.Fprintf(&b, "- &%c [%s1]\n", c, strings.Repeat("*"+string(c-1)+",", 9))
	}
	return b.String()
}

func longTextRepeated() string {
	return "text: &a " + strings.Repeat("y", 10_000) + "\ntexts: [" + strings.Repeat("*a,", 15_000) + "]"
}

func TestAliasesWork(t *testing.T) {
	var into sample
	err := details.Decode("text: &name cam\ntexts: [*name, *name]\nmap: &m {a: *name}\nany: {<<: *m, b: 1}\n", &into)
	if err != nil || fmt.Sprint(into.Texts, into.Any) != "[cam cam] map[a:cam b:1]" {
		t.Errorf("%v: %v", err, into)
	}
}

// TestPositionOfAliases checks that a path leads through an alias.
func TestPositionOfAliases(t *testing.T) {
	const text = "any: &x\n- {port: a}\ndeep: *x\n"
	fault, ok := errors.AsType[*details.Fault](details.Decode(text, &sample{}))
	if !ok || fault.Path != "deep[0].port" {
		t.Fatal(fault)
	}
	if line, column := fault.Position(text); line != 2 || column != 10 {
		t.Errorf("at %d:%d", line, column)
	}
}

// meanwhile is a value that calls the function of its test while it is decoded.
type meanwhile int

var whileDecoding func()

func (*meanwhile) UnmarshalJSON([]byte) error {
	whileDecoding()
	return nil
}

// TestOneAtATime checks that the memory for decoding is needed once, however many agents send details
// at the same time.
func TestOneAtATime(t *testing.T) {
	for name, other := range map[string]func(){
		"details": func() { _ = details.Decode("{}", &sample{}) }, // they have no mistakes
		"a text":  func() { details.Text("http://a/") },
	} {
		returned := make(chan struct{})
		whileDecoding = func() {
			go func() {
				defer close(returned)
				other()
			}()
			for range 10_000 {
				select {
				case <-returned:
					t.Errorf("%s: decoded at the same time", name)
					return
				default:
					runtime.Gosched()
				}
			}
		}
		var into struct {
			Value meanwhile `json:"value"`
		}
		if err := details.Decode("value: 1", &into); err != nil {
			t.Fatal(err)
		}
		<-returned
	}
}

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"http://a/": "http://a/", " 'a' \n": "a", ">-\n a\n b\n": "a b", "": "", "1": "", "a: b": "", "[a]": "", "a\n---\nb": "", "&a [*a]": "",
	} {
		if got, ok := details.Text(text); ok != (want != "") || ok && got != want {
			t.Errorf("%q: got %q, %t", text, got, ok)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		"", "text: a", "deep: [{level: high}]", aliasBomb()[:200], "any: &a [*a]", "a: 1\n---\n", "? {a: b}\n: c", "<<: [*a]",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		err := details.Decode(text, &sample{})
		if err == nil {
			return
		}
		fault, ok := errors.AsType[*details.Fault](err)
		if !ok {
			t.Fatalf("%T is not a fault: %v", err, err)
		}
		if line, column := fault.Position(text); line < 1 || column < 0 || line > 2*len(text)+1 {
			t.Errorf("%v is at %d:%d", err, line, column)
		}
	})
}

// TestAllMistakes checks that all mistakes are reported at once, without those that follow
// from another.
func TestAllMistakes(t *testing.T) {
	const text = "textz: [a]\ndeep: [{port: a}, 7]\nmap: {a: 1, b: x}\ntext: wrong\nflag: no\nsmall: x\n"
	var into sample
	err := details.Decode(text, &into, func() error {
		if into.Text != "wrong" || into.Map["b"] != "x" || len(into.Map) != 1 || len(into.Deep) != 2 {
			t.Errorf("what has no mistakes was not decoded: %+v", into)
		}
		return errors.Join(
			details.Faultf("text", "of a check"), nil,
			details.Faultf("texts", "missing"),      // it is misspelt
			details.Faultf("small", "out of range"), // it was not decoded
			details.Faultf("deep", "too few"),       // some were not decoded
		)
	}, func() error { return details.Faultf("flag", "of another check") })
	var found []string
	for _, fault := range details.Faults(err) {
		line, column := fault.Position(text)
		found = append(found, fmt.Sprintf("%d:%d %s", line, column, fault.Path))
	}
	want := "2:15 deep[0].port, 2:19 deep[1], 3:10 map.a, 6:8 small, 1:1 textz, 4:7 text, 5:7 flag"
	if got := strings.Join(found, ", "); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
	if found := details.Faults(details.Decode("deep: ["+strings.Repeat("{prot: 1},", 5000)+"]", &sample{})); len(found) > 30 {
		t.Errorf("%d mistakes", len(found))
	}
	many := func() error { return errors.Join(slices.Repeat([]error{details.Faultf("text", "of a check")}, 50)...) }
	if found := details.Faults(details.Decode("text: a", &sample{}, many)); len(found) > 30 {
		t.Errorf("%d mistakes", len(found))
	}
}
