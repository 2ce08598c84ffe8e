package readywhen_test

import (
	"strings"
	"testing"

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
		"not there yet":              {source: `self.status.x == 1`, self: running, err: "no such key"},
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
