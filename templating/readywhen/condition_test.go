package readywhen_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/templating/readywhen"
)

func TestCondition(t *testing.T) {
	running := map[string]any{"kind": "EdgeDevice", "status": map[string]any{
		"edgeDevicePhase": "Running", "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}, "n": int64(3),
	}}
	for name, tc := range map[string]struct {
		source string
		self   map[string]any
		want   bool
		err    string // part of it
	}{
		"a field":       {source: `self.status.edgeDevicePhase == "Running"`, self: running, want: true},
		"another value": {source: `self.status.edgeDevicePhase == "Failed"`, self: running},
		"a list": {
			source: `self.status.conditions.exists(c, c.type == "Ready" && c.status == "True")`,
			self:   running, want: true,
		},
		"a number":                   {source: `self.status.n >= 3`, self: running, want: true},
		"not there yet":              {source: `self.status.x == 1`, self: running, err: "ready-when: a field does not exist: self.status.x"},
		"not there yet, asked first": {source: `has(self.status.x) && self.status.x == 1`, self: running},
		"known when it runs":         {source: `self.kind`, self: running, err: "not true or false"},
		"no condition":               {source: `"a"`, err: "yields string"},
		"a mistake":                  {source: `self.status ==`, err: "at column"},
		"an unknown name":            {source: `object.status`, err: "undeclared reference to 'object'"},
		"too long":                   {source: strings.Repeat("x", 2000), err: "1024 bytes"},
		"too deep":                   {source: strings.Repeat("(", 400) + "true" + strings.Repeat(")", 400), err: "at column"},
		"no regular expressions":     {source: `"a".matches("(a{1000}){9}")`, err: "undeclared reference to 'matches'"},
		"doubling text":              {source: doubling(), self: running, err: "cost limit"},
		"too expensive": {
			source: `[1,2,3,4,5,6,7,8,9,0].all(a, [1,2,3,4,5,6,7,8,9,0].all(b, ` +
				`[1,2,3,4,5,6,7,8,9,0].all(c, [1,2,3,4,5,6,7,8,9,0].all(d, [1,2,3,4,5,6,7,8,9,0].all(e, a+b+c+d+e+self.status.n>=0)))))`,
			self: running, err: "cost limit",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := readywhen.Compile(tc.source)
			var got bool
			if err == nil {
				got, err = c.Holds(tc.self)
			}
			if tc.err == "" && (err != nil || got != tc.want) {
				t.Errorf("%s gives %v, %v; want %v", tc.source, got, err, tc.want)
			}
			if tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("%s gives %v, %v; want an error with %q", tc.source, got, err, tc.err)
			}
		})
	}
}

// doubling doubles a text as often as a condition can be long.
func doubling() string {
	return `["a"]` + strings.Repeat(".map(x, x+x)", 40) + `[0] == "" || self.status.n == 3`
}

// The cost of an evaluation follows its work, so the limit also bounds its time.
func TestCostFollowsTheObject(t *testing.T) {
	items, names := make([]any, 300), make([]any, 40)
	for i := range items {
		items[i] = map[string]any{"text": strings.Repeat("x", 1000)}
	}
	for i := range names {
		names[i] = map[string]any{"type": fmt.Sprint("Condition", i), "status": "True"}
	}
	self := map[string]any{"items": items, "text": strings.Repeat("x", 1<<20), "conditions": names}
	for source, allowed := range map[string]bool{
		`self.items.all(a, self.items.all(b, self == self))`:                             false,
		`self.items.all(a, self.items != [])`:                                            true,
		`self.items.all(a, self.items == self.items)`:                                    false,
		`self.items.all(a, [a, self] == [a, self])`:                                      false,
		`self.items.all(a, {'x': self} == {'x': self})`:                                  false,
		`self.items.all(a, a in self.items)`:                                             false,
		`self.items.all(a, self.text.size() > 0)`:                                        false,
		`self.items.all(a, self.text.contains('xxxxxxxxxxy'))`:                           false,
		`self.items.all(a, size(a.text) == 1000)`:                                        false,
		`self.conditions.all(c, size(c.type) > 0 && c.status in ['True', 'False'])`:      true,
		`self.conditions.exists(c, c.type == 'Condition39' && c.status == 'True')`:       true,
		`self.conditions.all(a, self.conditions.exists_one(b, b.type == a.type))`:        true,
		`self.conditions[0] == {'type': 'Condition0', 'status': 'True'} && self == self`: false,
		`self.conditions == self.conditions && self.items.size() == 300`:                 true,
	} {
		condition, err := readywhen.Compile(source)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		holds, err := condition.Holds(self)
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("%s took %v", source, took)
		}
		limited := err != nil && strings.Contains(err.Error(), "cost limit")
		if limited == allowed || allowed && !holds {
			t.Errorf("%s: %v, %v; want it to be allowed: %v", source, holds, err, allowed)
		}
	}
}
