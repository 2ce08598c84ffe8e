package bundle

import (
	"regexp"
	"strings"
)

// quotedValue matches a value in quotes, which may be escaped because the text is a string
// in another, or the bracket with which a list or a map begins.
const quotedValue = `\\+".*?\\+"|"(?:[^"\\]|\\.)*"|"[^\n]*|'[^']*'|[\[{]`

var (
	// userInfo also matches a password with characters that a URL should have escaped. A
	// port, which has only digits, is none.
	userInfo = regexp.MustCompile(
		`([A-Za-z][A-Za-z0-9+.-]*://)(?:[^\s/?#"'<>]+|[^\s/?#"'<>:@]*:\d*[^\d\s/?#"'<>][^\s"'<>]*)@`)
	bearer     = regexp.MustCompile(`(?i)\b(bearer) +[A-Za-z0-9._~+/=-]{8,}`)
	header     = regexp.MustCompile(`(?i)\b(authorization[\\"']*: *[\\"']*(?:(?:basic|bearer|digest|negotiate) +)?)[^\s"'\\]+`)
	jsonToken  = regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*`)
	privateKey = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`)
	// assignment matches name=value, name:value and "name": "value", flag a flag and the
	// next argument, yamlField a line of YAML, and flowField a field in braces. "cannot
	// read the secret: timeout" is none.
	assignment = regexp.MustCompile(`(?P<name>[A-Za-z0-9_.-]+)(?:\\*["']?=|\\*["'] *: *|:)(?P<value>` + quotedValue + `|[^\s&"]+)`)
	flag       = regexp.MustCompile(`(?:^|[\s"'])--?(?P<name>[A-Za-z][A-Za-z0-9_.-]*)[ \t]+(?P<value>` + quotedValue + `|[^\s"'-][^\s"']*)`)
	yamlField  = regexp.MustCompile(`(?m)^[ \t]*(?:- +)*["']?(?P<name>[A-Za-z0-9_.-]+)["']?:[ \t]+(?P<value>\S.*)$`)
	flowField  = regexp.MustCompile(
		`[{,]\s*["']?(?P<name>[A-Za-z0-9_.-]+)["']?:[ \t]+(?P<value>` + quotedValue + `|[^\s,{}\[\]]+(?: +[^\s,{}\[\]]+)*)`)
	// blockField matches a field of YAML whose value is on the next lines.
	blockField = regexp.MustCompile(`^([ \t]*(?:- +)*)["']?([A-Za-z0-9_.-]+)["']?:[ \t]*([|>][+-]?\d?[+-]?)?[ \t]*(?:#.*)?$`)
)

// Text returns a text without credentials as far as their form, or the name next to
// them, tells them: private keys, tokens, user information in URLs, and assignments
// such as password=….
func (r *Redactor) Text(text string) string {
	text = privateKey.ReplaceAllString(text, Redacted)
	text = jsonToken.ReplaceAllString(text, Redacted)
	text = bearer.ReplaceAllString(text, "$1 "+Redacted)
	text = userInfo.ReplaceAllString(text, "${1}"+Redacted+"@")
	text = replaceBlocks(text)
	for _, pattern := range []*regexp.Regexp{yamlField, flowField, flag, assignment} {
		text = replaceNamed(text, pattern)
	}
	return header.ReplaceAllString(text, "${1}"+Redacted)
}

// replaceNamed replaces the value in each match whose name is that of a credential. The
// pattern has the groups name and value. The value of another name is searched, too, unless
// it is a line.
func replaceNamed(text string, pattern *regexp.Regexp) string {
	var b strings.Builder
	name, value := 2*pattern.SubexpIndex("name"), 2*pattern.SubexpIndex("value")
	for {
		match := pattern.FindStringSubmatchIndex(text)
		if match == nil {
			return b.String() + text
		}
		begin, end := match[value], match[value+1]
		switch {
		case !mayShow(text[match[name]:match[name+1]], text[begin:end]):
			if strings.ContainsAny(text[begin:begin+1], "[{") {
				end = endOfBracket(text, begin)
			}
			b.WriteString(text[:begin] + Redacted)
		case pattern == yamlField:
			b.WriteString(text[:end])
		default:
			end = begin
			b.WriteString(text[:end])
		}
		text = text[end:]
	}
}

// endOfBracket returns where the list or map ends that begins at an offset.
func endOfBracket(text string, begin int) int {
	depth := 0
	for i := begin; i < len(text); i++ {
		switch text[i] {
		case '[', '{':
			depth++
		case ']', '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(text)
}

// mayShow reports whether a value in a text may be shown next to its name.
func mayShow(name, value string) bool {
	switch levelOf(name) {
	case open:
		return true
	case reference:
		value, _, _ = strings.Cut(value, " #")
		return refers(name, strings.Trim(value, `\"' ,;)]}`))
	}
	return false
}

// replaceBlocks replaces the lines that are the value of a credential in YAML.
func replaceBlocks(text string) string {
	if !strings.Contains(text, "\n") {
		return text
	}
	var b strings.Builder
	inBlock, isList, indentation := false, false, 0
	for line := range strings.Lines(text) {
		content := strings.TrimLeft(line, " \t")
		depth := len(line) - len(content)
		isItem := isList && depth == indentation && strings.HasPrefix(content, "- ")
		if inBlock && (strings.TrimSpace(line) == "" || depth > indentation || isItem) {
			continue
		}
		match := blockField.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
		if inBlock = match != nil && levelOf(match[2]) == credential; inBlock {
			indentation, isList = len(match[1]), match[3] == ""
			line = match[1] + match[2] + ": " + Redacted + "\n"
		}
		b.WriteString(line)
	}
	return b.String()
}
