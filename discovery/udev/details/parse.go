package details

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"akri.sh/akri/discovery/details"
	"akri.sh/akri/internal/text"
)

// otherKeys are keys of udev's rules that do not select devices by what they are.
var otherKeys = []string{
	"ACTION", "CONST", "GOTO", "GROUP", "IMPORT", "LABEL", "MODE", "NAME", "OPTIONS", "OWNER", "PROGRAM", "RESULT", "RUN",
	"SECLABEL", "SYMLINK", "SYSCTL", "TEST", "WAIT_FOR",
}

// operators are those of udev's rules, longest first.
var operators = []string{"==", "!=", "+=", "-=", ":=", "="}

// word is what may be the name of a field.
var word = regexp.MustCompile(`^\w*`)

// ruleParser reads a rule from left to right.
type ruleParser struct {
	whole string
	rest  string
	// left is how many instructions the expressions of further conditions may have.
	left int
}

// parseRule parses a rule such as KERNEL=="ttyUSB*", ATTRS{idVendor}=="10c4". Its regular
// expressions may have as many instructions as left.
func parseRule(rule string, left int) (Rule, *details.Fault) {
	if len(rule) > maxRuleBytes {
		return nil, details.Faultf("", "%d bytes, more than %d", len(rule), maxRuleBytes).Hintf("use several rules")
	}
	if !utf8.ValidString(rule) {
		return nil, details.Faultf("", "not valid UTF-8")
	}
	p := &ruleParser{whole: rule, rest: rule, left: left}
	var parsed Rule
	for p.skipSpace(); p.rest != ""; p.skipSpace() {
		if len(parsed) == maxConditions {
			return nil, p.fault("more than %d conditions", maxConditions)
		}
		condition, fault := p.condition()
		if fault != nil {
			return nil, fault
		}
		parsed = append(parsed, condition)
		p.skipSpace()
		if p.rest == "" {
			break
		}
		if !p.skip(",") {
			return nil, p.fault("want a comma or the end of the rule, not %s", p.next()).Hintf("separate conditions by commas")
		}
	}
	if len(parsed) == 0 {
		return nil, p.fault("the rule is empty").Hintf(`for all devices, write KERNEL=="*"`)
	}
	return parsed, nil
}

// condition parses a field, an operator and a value in quotes.
func (p *ruleParser) condition() (Condition, *details.Fault) {
	field, key, fault := p.field()
	if fault != nil {
		return Condition{}, fault
	}
	p.skipSpace()
	not, fault := p.operator()
	if fault != nil {
		return Condition{}, fault
	}
	p.skipSpace()
	at := *p
	value, fault := p.value()
	if fault != nil {
		return Condition{}, fault
	}
	pattern, err := newPattern(value, field.regex(not), p.left)
	if errors.Is(err, errTooLarge) {
		return Condition{}, at.fault("%v", err).Hintf("write fewer wildcards and repetitions such as {100}, or use several Configurations")
	}
	if err != nil {
		return Condition{}, at.fault("%v", err).Hintf("%s is compared with shell globs and with regular expressions", field)
	}
	p.left -= pattern.size
	return Condition{Reference{field, key}, not, pattern}, nil
}

func (p *ruleParser) field() (Field, string, *details.Fault) {
	name := word.FindString(p.rest)
	hasKey, known := fields[Field(name)]
	if !known {
		return "", "", p.unknown(name)
	}
	p.rest = p.rest[len(name):]
	if !hasKey {
		if strings.HasPrefix(p.rest, "{") {
			return "", "", p.fault("%s takes no braces", name).Hintf("remove them")
		}
		return Field(name), "", nil
	}
	start := *p
	if !p.skip("{") {
		return "", "", p.fault("%s has no name in braces", name).Hintf("write %s{name}", name)
	}
	key, rest, closed := strings.Cut(p.rest, "}")
	if !closed {
		return "", "", start.fault("the brace is not closed").Hintf("write %s{name}", name)
	}
	if fault := checkKey(Field(name), key); fault != nil {
		return "", "", p.fault("%s", fault.Cause).Hintf("%s", fault.Hint)
	}
	p.rest = rest
	return Field(name), key, nil
}

// unknown describes a text that is not a field.
func (p *ruleParser) unknown(name string) *details.Fault {
	var names []string
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		names = append(names, string(field))
	}
	switch {
	case name == "":
		return p.fault("want a field such as KERNEL, not %s", p.next())
	case slices.Contains(otherKeys, name):
		return p.fault("%s is not supported: rules only select devices", name).Hintf("the fields are %s", strings.Join(names, ", "))
	}
	remedy := "the fields are " + strings.Join(names, ", ")
	if near := text.Nearest(name, names); near != "" {
		remedy = "did you mean " + near + "?"
	}
	return p.fault("unknown field %q", name).Hintf("%s", remedy)
}

func (p *ruleParser) operator() (not bool, fault *details.Fault) {
	i := slices.IndexFunc(operators, func(operator string) bool { return strings.HasPrefix(p.rest, operator) })
	switch {
	case i < 0:
		return false, p.fault("want == or !=, not %s", p.next())
	case i > 1:
		return false, p.fault("%s assigns: rules only compare", operators[i]).Hintf("write == or !=")
	}
	p.rest = p.rest[len(operators[i]):]
	return operators[i] == "!=", nil
}

// value parses a value in double quotes. As in udev, \" stands for a quote, and other
// backslashes for themselves.
func (p *ruleParser) value() (string, *details.Fault) {
	start := *p
	if !p.skip(`"`) {
		return "", p.fault("want a value in double quotes, not %s", p.next())
	}
	var value strings.Builder
	for {
		i := strings.IndexByte(p.rest, '"')
		if i < 0 {
			return "", start.fault("the quote is not closed").Hintf(`end the value with "`)
		}
		before, escaped := strings.CutSuffix(p.rest[:i], `\`)
		value.WriteString(before)
		p.rest = p.rest[i+1:]
		if !escaped {
			return value.String(), nil
		}
		value.WriteByte('"')
	}
}

// checkKey checks the name in braces. Names of attributes are paths below the device, so
// they must not lead elsewhere.
func checkKey(field Field, key string) *details.Fault {
	switch {
	case key == "":
		return details.Faultf("", "the name in braces is empty").Hintf("write %s{name}", field)
	case strings.ContainsFunc(key, func(c rune) bool { return c < ' ' || c == 0x7f }):
		return details.Faultf("", "%q has control characters", key)
	case field == Env && strings.Contains(key, "="):
		return details.Faultf("", "%q is not the name of a property", key).Hintf("remove the =")
	case field == Env:
		return nil
	case strings.HasPrefix(key, "["):
		return details.Faultf("", "%q names another device", key).Hintf("write the name of an attribute of the device or its ancestors")
	case strings.ContainsAny(key, "*"):
		return details.Faultf("", "%q: wildcards are not supported in names", key).Hintf("write the whole name")
	case strings.HasPrefix(key, "/") || slices.Contains(strings.Split(key, "/"), ".."):
		return details.Faultf("", "%q leads out of the device", key).Hintf("write a path below the device, such as queue/rotational")
	}
	return nil
}

func (p *ruleParser) skipSpace() { p.rest = strings.TrimLeft(p.rest, " \t\r\n") }

func (p *ruleParser) skip(token string) (found bool) {
	p.rest, found = strings.CutPrefix(p.rest, token)
	return found
}

// next describes the next character for a message.
func (p *ruleParser) next() string {
	if p.rest == "" {
		return "the end of the rule"
	}
	character, _ := utf8.DecodeRuneInString(p.rest)
	return fmt.Sprintf("%q", string(character))
}

// fault returns a mistake at the current place. Columns count characters, from 1.
func (p *ruleParser) fault(format string, arguments ...any) *details.Fault {
	column := 1 + utf8.RuneCountInString(p.whole[:len(p.whole)-len(p.rest)])
	return details.Faultf("", "column %d: %s", column, fmt.Sprintf(format, arguments...))
}
