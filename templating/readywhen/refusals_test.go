package readywhen_test

import (
	"strings"
	"testing"

	"akri.sh/akri/templating/readywhen"
)

// holds compiles and evaluates a condition.
func holds(source string, self map[string]any) (bool, error) {
	condition, err := readywhen.Compile(source)
	if err != nil {
		return false, err
	}
	return condition.Holds(self)
}

// TestFailures checks what is said about each failure of an evaluation: its kind and the
// part of the condition, but nothing of the object.
func TestFailures(t *testing.T) {
	self := map[string]any{
		"items": []any{"secret"}, "text": "secret", "number": int64(7), "least": int64(-1 << 63), "zero": int64(0), "half": 1.5,
		"map": map[string]any{"a": "secret"},
	}
	for source, want := range map[string]string{
		`self.none`:                 "a field does not exist: self.none",
		`self["none"] == 1`:         `a field does not exist: self["none"]`,
		`self.map.none.deeper == 1`: "a field does not exist: self.map.none.deeper",
		`self.text.none == 1`:       "a field does not exist: self.text.none",
		`self.items[1] == "a"`:      "an index is out of range: self.items[1]",
		`self.items[-1] == "a"`:     "an index is out of range: self.items[-1]",
		`self.items["0"] == "a"`:    `a value has another type: self.items["0"]`,
		`self.items[0.5] == "a"`:    "a value has another type: self.items[0.5]",
		`self.items.none == 1`:      "a value has another type: self.items.none",
		`self.text + 1 == 2`:        "a value has another type: self.text + 1",
		`self.text < 1`:             "a value has another type: self.text < 1",
		`self.text && true`:         "a value has another type: self.text && true",
		`self.text ? true : false`:  "a value has another type: self.text ? true : false",
		`!self.text`:                "a value has another type: !self.text",
		`-self.text == 1`:           "a value has another type: -self.text",
		`size(self.number) == 1`:    "a value has another type: size(self.number)",
		`self.number.all(x, true)`:  "a value has another type",
		`1 in self.number`:          "a value has another type: 1 in self.number",
		`int(self.text) == 1`:       "a value cannot be converted: int(self.text)",
		`uint(self.least) == 1u`:    "a number is out of range: uint(self.least)",
		`double(self.text) == 1.0`:  "a value cannot be converted: double(self.text)",
		`bool(self.text)`:           "a value cannot be converted: bool(self.text)",
		`int(self.items) == 1`:      "a value has another type: int(self.items)",
		`timestamp(self.text) == timestamp("2024-01-01T00:00:00Z")`:    "a value cannot be converted: timestamp(self.text)",
		`duration(self.text) == duration("1s")`:                        "a value cannot be converted: duration(self.text)",
		`1 / self.zero == 1`:                                           "a division by zero: 1 / self.zero",
		`1 % self.zero == 1`:                                           "a division by zero: 1 % self.zero",
		`self.least - 1 == 1`:                                          "a number is out of range: self.least - 1",
		`self.least * 2 == 1`:                                          "a number is out of range: self.least * 2",
		`uint(self.number - 8) == 1u`:                                  "a number is out of range: uint(self.number - 8)",
		`timestamp(self.number * 10000000000000000) == timestamp(0)`:   "a time is out of range: timestamp(self.number * 10000000000000000)",
		`duration("200000h") + duration("2400000h") == duration("1s")`: `a number is out of range: duration("200000h") + duration("2400000h")`,
		`timestamp("2024-01-01T00:00:00Z").getHours(self.text) == 1`: "a value has another type or format: " +
			`timestamp("2024-01-01T00:00:00Z").getHours(self.text)`,
		`int(1e300) == 1 && self.number == 7`: "a number is out of range: int(1e+300)",
		`self.text`:                           "the condition yields string, not true or false",
		`self.map`:                            "the condition yields map, not true or false",
	} {
		_, err := holds(source, self)
		if err == nil || err.Error() != "ready-when: "+want {
			t.Errorf("%s: got %v\nwant %s", source, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error contains a value of the object: %v", source, err)
		}
	}
}

// TestBounds checks that a condition at a limit is accepted, and that the next is refused.
func TestBounds(t *testing.T) {
	for name, tc := range map[string]struct {
		limit  int
		source func(n int) string
		want   string
	}{
		"bytes": {
			1024, func(n int) string { return `self.text != "` + strings.Repeat("x", n-len(`self.text != ""`)) + `"` },
			"a condition may have 1024 bytes, this one has 1025",
		},
		"parentheses": {
			49, func(n int) string { return strings.Repeat("(", n) + "true" + strings.Repeat(")", n) },
			"expression recursion limit exceeded: 50 at column 0",
		},
		"lists": {
			50, func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) + " == []" },
			"expression recursion limit exceeded: 50 at column 0",
		},
	} {
		if _, err := readywhen.Compile(tc.source(tc.limit)); err != nil {
			t.Errorf("%s: %d are refused: %v", name, tc.limit, err)
		}
		if _, err := readywhen.Compile(tc.source(tc.limit + 1)); err == nil || err.Error() != tc.want {
			t.Errorf("%s: %d give %v\nwant %s", name, tc.limit+1, err, tc.want)
		}
	}
}

// TestCost checks how much of an object a condition may read: 20,000 units, of an element
// or of ten bytes of text each.
func TestCost(t *testing.T) {
	const units, around = 20_000, 100 // what the condition itself costs
	of := func(n int) map[string]any {
		numbers, fields := make([]any, n), make(map[string]any, n)
		for i := range numbers {
			numbers[i], fields[strings.Repeat("x", i%7)+string(rune(i+256))] = int64(i), int64(i)
		}
		return map[string]any{"numbers": numbers, "map": fields, "text": strings.Repeat("x", 10*n)}
	}
	for _, source := range []string{
		"self.numbers == self.numbers", "self.numbers != []", "-1 in self.numbers || true", "self.map == self.map",
		"size(self.text) > 0", "self.text == self.text", "self.text.contains('y') || true",
		"[self.text] == [self.text]", "{'a': self.numbers} == {'a': self.numbers}",
	} {
		cheap := strings.Contains(source, "[]") // it compares no more than the shorter list
		if met, err := holds(source, of(units-around)); !met || err != nil {
			t.Errorf("%s, just below the limit: %v, %v", source, met, err)
		}
		_, err := holds(source, of(units+around))
		switch {
		case cheap && err != nil:
			t.Errorf("%s: %v", source, err)
		case !cheap && (err == nil || !strings.HasPrefix(err.Error(), "ready-when: the evaluation exceeds the cost limit")):
			t.Errorf("%s, just above the limit: %v", source, err)
		}
	}
}

// TestQuotedParts checks that messages quote no more than a part of a long condition.
func TestQuotedParts(t *testing.T) {
	long := strings.Repeat("x", 300)
	_, err := holds("self."+long+" == 1", map[string]any{})
	if want := "ready-when: a field does not exist: self." + strings.Repeat("x", 112) + "…"; err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	_, err = readywhen.Compile(long)
	if want := "undeclared reference to '" + strings.Repeat("x", 172) + "… at column 1"; err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	for source, want := range map[string]string{
		"":                         "mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, ",
		"self.text.startsWith(1)":  "found no matching overload for 'startsWith' applied to 'dyn.(int)' at column 21",
		"has(self)":                "invalid argument to has() macro at column 5",
		"null":                     "the condition yields null_type, not true or false",
		"self.a ==\n1 1":           "extraneous input '1' expecting <EOF> at column 3",
		"99999999999999999999 > 1": "invalid int literal at column 1",
	} {
		if _, err := readywhen.Compile(source); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v\nwant %s", source, err, want)
		}
	}
}
