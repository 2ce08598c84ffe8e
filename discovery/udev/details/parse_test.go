package details

import (
	"strings"
	"testing"

	"akri.sh/akri/discovery/details"
	"akri.sh/akri/discovery/handlertest"
)

func TestRuleMistakes(t *testing.T) {
	for name, tc := range map[string]struct{ rule, wrong string }{
		"an empty rule":           {"  ", `column 3: the rule is empty … KERNEL=="*"`},
		"an unknown field":        {`KERNEL=="a", TYPO=="b"`, `column 14: unknown field "TYPO" … the fields are ATTR, ATTRS, DEVPATH`},
		"a near field":            {`SUBSYTEM=="a"`, `column 1: unknown field "SUBSYTEM" … did you mean SUBSYSTEM?`},
		"an action":               {`KERNEL=="a", SYMLINK=="b"`, "column 14: SYMLINK is not supported: rules only select devices"},
		"an assignment":           {`KERNEL=="a", ENV{B}+="b"`, "column 20: += assigns … =="},
		"another operator":        {`KERNEL~"a"`, `column 7: want == or !=, not "~"`},
		"no operator":             {`KERNEL`, "column 7: want == or !=, not the end of the rule"},
		"single quotes":           {`KERNEL=='a'`, `column 9: want a value in double quotes, not "'"`},
		"an open quote":           {`KERNEL=="a, SUBSYSTEM==x`, "column 9: the quote is not closed"},
		"no comma":                {`KERNEL=="a" SUBSYSTEM=="b"`, `column 13: want a comma or the end of the rule, not "S"`},
		"a comma first":           {`, KERNEL=="a"`, `column 1: want a field such as KERNEL, not ","`},
		"no key":                  {`ATTR=="a"`, "column 5: ATTR has no name in braces … ATTR{name}"},
		"a key that is not ended": {`ATTRS{idVendor=="a"`, "column 6: the brace is not closed"},
		"an empty key":            {`ENV{}=="a"`, "column 5: the name in braces is empty"},
		"a key too many":          {`KERNEL{a}=="a"`, "column 7: KERNEL takes no braces"},
		"upwards":                 {`ATTR{../x}=="a"`, `column 6: "../x" leads out of the device`},
		"absolute":                {`ATTR{/etc/passwd}=="a"`, "column 6: … leads out of the device"},
		"another device":          {`ATTR{[dmi/id]sys_vendor}=="a"`, "names another device"},
		"a wildcard in a name":    {`ATTR{*/vendor}=="a"`, "wildcards are not supported"},
		"a regular expression":    {`KERNEL=="x", ATTRS{product}=="(USB"`, "column 30: error parsing regexp: missing closing ) … shell globs"},
		"characters, not bytes":   {`ATTR{é}=="ü", KERNEL="a"`, "column 21: = assigns"},
		"a line break":            {"KERNEL==\"a\",\nKERNEL=\"b\"", "column 20: = assigns"},
		"not UTF-8":               {"KERNEL==\"\xff\"", "not valid UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			_, fault := parseRule(tc.rule, maxInstructions)
			if fault == nil {
				t.Fatal("accepted")
			}
			handlertest.CheckError(t, fault, tc.wrong)
		})
	}
}

func FuzzParseRule(f *testing.F) {
	for _, seed := range []string{
		`KERNEL=="video[0-9]*",SUBSYSTEM=="video4linux", ATTR{idVendor}!="05a9"`, `ENV{A}=="\"|x"`, `ATTRS{a/b}=="(.*|[[:alpha:]])"`,
		`TAG=`, `KERNEL{`, "DRIVERS!=\"é\",",
	} {
		f.Add(seed, "video0")
	}
	f.Fuzz(func(t *testing.T, rule, value string) {
		parsed, fault := parseRule(rule, maxInstructions)
		if fault != nil {
			checkFault(t, rule, fault)
			return
		}
		if len(parsed) == 0 || len(parsed) > maxConditions {
			t.Fatalf("%q: %d conditions", rule, len(parsed))
		}
		for _, c := range parsed {
			if hasKey, known := fields[c.Field]; !known || hasKey != (c.Key != "") || c.Field != Env && strings.HasPrefix(c.Key, "/") {
				t.Fatalf("%q: %+v", rule, c)
			}
			c.Pattern.Matches(value)
		}
		if again, fault := parseRule(" "+rule+" ", maxInstructions); fault != nil || len(again) != len(parsed) {
			t.Fatalf("%q: spaces around the rule change it: %v", rule, fault)
		}
	})
}

func checkFault(t *testing.T, rule string, fault *details.Fault) {
	t.Helper()
	if fault.Cause == "" || len(fault.Error()) > 2*maxRuleBytes+1000 {
		t.Fatalf("%q: %q", rule, fault)
	}
}
