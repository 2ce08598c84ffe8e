package details

import (
	"strings"
	"testing"
)

func TestCheckPath(t *testing.T) {
	for path, want := range map[string]string{
		"model": "", "info.ports.0.name": "", "0": "", `fw\.version`: "", "Total Energy": "", "größe.ä-1": "", `\#`: "", "xsi:type": "",
		"info.ports[0].name":                `at: "payload.info.ports[0].name" is not a path; write payload.info.ports.0.name`,
		"[0][12].a":                         `at: "payload.[0][12].a" is not a path; write payload.0.12.a`,
		`info["fw.version"]`:                `at: "payload.info[\"fw.version\"]" is not a path; write payload.info.fw\.version`,
		"a['b c'].d":                        `at: "payload.a['b c'].d" is not a path; write payload.a.b c.d`,
		"a/b":                               `is not a path; write payload.a.b, or \/ for a slash in a key`,
		"/ports/0/name":                     `write payload.ports.0.name, or \/`,
		"$.x":                               `at: "payload.$.x" is not a path; write payload.x`,
		"$['x'][0]":                         "write payload.x.0",
		`a["b/c"]`:                          `write payload.a.b\/c`,
		"~":                                 `write payload.\~`,
		"a.b~c+":                            `write payload.a.b\~c\+`,
		"$.store.*":                         "queries, wildcards",
		"":                                  "is not a path; write keys and indexes such as payload.info.ports.0.name, with a backslash",
		"a..b":                              "not a path; write keys",
		".a":                                "not a path; write payload.a",
		"a.":                                "not a path; write keys",
		"a[":                                "not a path; write keys",
		"a[*].b":                            "queries, wildcards and modifiers are not supported",
		"a.#":                               "queries, wildcards",
		"a.#.b":                             "queries, wildcards",
		`a.#(b=="c")#`:                      "queries, wildcards",
		"a*":                                "queries, wildcards",
		"a.?":                               "queries, wildcards",
		"@pretty":                           "queries, wildcards",
		"a.@reverse":                        "queries, wildcards",
		"a|b":                               "queries, wildcards",
		"{a,b}":                             "queries, wildcards",
		"!\"x\"":                            "queries, wildcards",
		"..0":                               "queries, wildcards",
		`a\`:                                "queries, wildcards",
		"a\nb":                              "queries, wildcards",
		strings.Repeat("a", maxPathBytes+1): "not a path",
	} {
		switch err := CheckPath("at", "payload.", path); {
		case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: got %v, want %q", path, err, want)
		}
	}
}
