package expr

import (
	"errors"
	"regexp"
	"slices"
	"sort"
	"strings"
	"text/template/parse"
	"unicode"
	"unicode/utf8"

	"akri.sh/akri/internal/text"
	"akri.sh/akri/templating/internal/budget"
	"akri.sh/akri/templating/internal/fault"
)

// parseText parses with text/template's parser, without its names and wording.
func parseText(source string) (*parse.ListNode, *fault.Fault) {
	if len(source) > budget.MaxObjectBytes || expressionBytes(source) > MaxBytes {
		return nil, fault.Newf(fault.Whole, "split it, or use fewer or shorter expressions",
			"a string may have %d KiB, %d KiB of it in expressions", budget.MaxObjectBytes>>10, MaxBytes>>10)
	}
	if !utf8.ValidString(source) {
		return nil, fault.Newf(fault.Whole, "save the file as UTF-8", "this is not valid UTF-8")
	}
	trees := map[string]*parse.Tree{}
	tree, err := parseTree(source, trees)
	if err != nil {
		return nil, syntaxFault(source, err)
	}
	if len(trees) > 1 || tree.Root == nil {
		return nil, fault.Newf(defining.FindStringIndex(source)[0], insteadOfDefine, noDefine)
	}
	return tree.Root, nil
}

var (
	// quoted matches texts in quotes, and comments.
	quoted = regexp.MustCompile("(?s)`[^`]*`|\"(?:\\\\.|[^\"\\\\])*\"|'(?:\\\\.|[^'\\\\])*'|/\\*.*?\\*/")
	// action matches an expression, which may have }} in quotes.
	action = regexp.MustCompile(`(?s)\{\{(?:` + quoted.String() + `|.)*?(?:\}\}|$)`)
	// opening matches the beginning of an expression.
	opening = regexp.MustCompile(`\{\{`)
	// defining matches what gives a part of a text a name.
	defining = regexp.MustCompile(`define|block`)
)

// expressionBytes returns how much of a text is in expressions, which bounds what parsing
// takes. A text in quotes and a comment do not count.
func expressionBytes(source string) (size int) {
	for _, found := range action.FindAllString(source, -1) {
		size += len(quoted.ReplaceAllString(found, ""))
	}
	return size
}

// treeName is the name of the text for the parser. A define cannot have this name.
const treeName = "\x00"

func parseTree(source string, trees map[string]*parse.Tree) (tree *parse.Tree, err error) {
	defer func() {
		if p := recover(); p != nil { // no such input is known; a new one must not crash the process
			err = errors.New("the parser failed")
		}
	}()
	tree = parse.New(treeName)
	tree.Mode = parse.SkipFuncCheck // the resolver knows the functions, and suggests similar ones
	return tree.Parse(source, "", "", trees)
}

// syntaxFault translates an error of the parser. The parser knows the line at
// most; failingAction finds the place.
func syntaxFault(source string, err error) *fault.Fault {
	message := strings.TrimPrefix(err.Error(), "template: "+treeName+":")
	if _, after, found := strings.Cut(message, ": "); found {
		message = after
	}
	message, _, _ = strings.Cut(message, " in action started at ") // with the name of the text, which has none
	message = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, message)
	hint := ""
	for _, known := range syntaxMistakes {
		if known.matches(message) {
			hint = known.hint
			if known.cause != "" {
				message = known.cause
			}
			break
		}
	}
	return fault.Newf(failingAction(source), hint, "%s", text.Truncate(message, fault.MaxQuoted))
}

// orLiteral adds to the hint for the first expression with a mistake and without Akri's
// variables: it may be meant for another program that writes {{ too, such as Prometheus, Argo
// or Helm.
func orLiteral(faults []*fault.Fault, source string, names Names) {
	known := append(slices.Clip(names.Variables()), "INSTANCE") // also INSTANCES, at the wrong level
	for _, f := range faults {
		start := strings.LastIndex(source[:min(f.Offset+len("{{"), len(source))], "{{")
		action, _, _ := strings.Cut(source[max(start, 0):], "}}")
		ours := func(variable string) bool { return strings.Contains(action, variable) }
		if f.Offset >= 0 && !slices.ContainsFunc(known, ours) {
			f.Hint = strings.TrimPrefix(f.Hint+"; for {{ of another program write {{ \"{{\" }}, or {{ `{{` }} inside double quotes", "; ")
			return
		}
	}
}

// failingAction returns the offset of the first expression that makes the text
// unparsable, whatever follows.
func failingAction(source string) int {
	starts := opening.FindAllStringIndex(source, -1)
	fails := func(i int) bool {
		end := len(source)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		_, err := parseTree(source[:end], map[string]*parse.Tree{})
		return err != nil && !strings.Contains(err.Error(), "unexpected EOF")
	}
	return starts[sort.Search(len(starts)-1, fails)][0]
}

// syntaxMistake translates a message of the parser. An empty cause keeps the
// parser's wording.
type syntaxMistake struct{ message, cause, hint string }

// matches reports whether a message begins with the known one. A known message
// that begins with a space may be anywhere in it.
func (m *syntaxMistake) matches(message string) bool {
	if m.message[0] == ' ' {
		return strings.Contains(message, m.message)
	}
	return strings.HasPrefix(message, m.message)
}

const (
	noOperators     = "expressions have no operators"
	noDefine        = "define and block do not exist here"
	insteadOfDefine = "write the expression where it is needed; repeat with range"
)

// syntaxMistakes are the messages of the parser that authors may see.
var syntaxMistakes = []syntaxMistake{
	{"unclosed action", "the expression does not end", "write }} after it"},
	{"unclosed comment", "the comment does not end", "write */}} after it"},
	{
		"comment ends before closing delimiter", "the comment is not followed by }}",
		"write {{/* comment */}} and nothing else between the braces",
	},
	{"missing value for", "the expression is empty", `write a value between {{ and }}, or {{ "" }} for an empty string`},
	{"unexpected EOF", "if, range or with does not end", "write {{ end }} after its body"},
	{"unexpected {{end}}", "this end closes no if, range or with", "remove it, or write if, range or with before it"},
	{"unexpected {{else}}", "this else belongs to no if, range or with", "write if, range or with before it"},
	{"expected end; found {{else}}", "an if, range or with has two else branches", "keep one"},
	{"unterminated quoted string", "the quoted string does not end", "write the closing quotation mark"},
	{"unterminated raw quoted string", "the string in back quotes does not end", "write the closing back quote"},
	{
		"unterminated character constant", "single quotes hold one character",
		`write strings in double quotes, "like this", or in back quotes`,
	},
	{"malformed character constant", "single quotes hold one character", `write strings in double quotes, "like this", or in back quotes`},
	{"unclosed left paren", "a parenthesis is not closed", "write ) where it ends"},
	{"unexpected right paren", "a closing parenthesis has no opening one", "remove it, or write ( where it begins"},
	{`unexpected ">"`, noOperators, "write {{ gt A B }} or {{ ge A B }}"},
	{`unexpected "<"`, noOperators, "write {{ lt A B }} or {{ le A B }}"},
	{`unexpected "&"`, noOperators, "write {{ and A B }}"},
	{`unexpected "!"`, noOperators, "write {{ not A }} or {{ ne A B }}"},
	{`unexpected "|" in`, noOperators, "write {{ or A B }}"},
	{`unexpected "*"`, noOperators, "write {{ mul A B }}"},
	{`unexpected "/"`, noOperators, "write {{ div A B }}"},
	{`unexpected "%"`, noOperators, "write {{ mod A B }}"},
	{`unexpected ","`, "there are no commas between arguments", "write {{ function A B }}"},
	{
		`unexpected "("`, "functions are called without parentheses",
		`write {{ function A B }} or {{ A | function B }}, and parentheses around a call inside another`,
	},
	{"bad character U+005B '['", "expressions have no brackets", "write {{ index LIST 0 }} or {{ get MAP \"KEY\" }}"},
	{"bad character U+007B '{'", "there is one { too many", "variables are bare words: {{ INSTANCE_NAME }}"},
	{
		"bad character U+002D '-'", "a name cannot contain a dash",
		`write {{ get INSTANCE_PROPERTIES "KEY-WITH-DASH" }}, or put a space after {{- and before -}} to trim`,
	},
	{
		"bad character U+002F '/'", "a name cannot contain a slash",
		`write {{ get INSTANCE_PROPERTIES "KEY/WITH/SLASH" }}; to divide, write {{ div A B }}`,
	},
	{"bad character U+002B '+'", noOperators, "write {{ add A B }}"},
	{"bad character U+002A '*'", noOperators, "write {{ mul A B }}"},
	{
		"unrecognized character in action", "a character has no meaning in an expression",
		"strings are written in double quotes",
	},
	{"bad character", "", "names consist of letters, digits and _; other keys are read with get"},
	{`bad number syntax: "+`, noOperators, "write {{ add A B }}"},
	{
		`bad number syntax: "-`, "the minus sign has no number",
		"to subtract, write {{ sub A B }}; to trim, put a space after {{- and before -}}",
	},
	{`illegal number syntax: "+`, noOperators, "write {{ add A B }}"},
	{
		`illegal number syntax: "-`, "the minus sign has no number",
		"to subtract, write {{ sub A B }}; to trim, put a space after {{- and before -}}",
	},
	{`integer overflow: "0`, "a whole number does not begin with 0", "leave the 0 out, or write it in quotes to make it a string"},
	{"integer overflow", "the number does not fit into 64 bits", "write it in quotes to make it a string"},
	{"bad number syntax", "", `write strings in quotes, numbers as 80 or 0.5`},
	{"illegal number syntax", "", `write strings in quotes, numbers as 80 or 0.5`},
	{"undefined variable", "", "declare it first: {{ $name := VALUE }}; it is valid until the end of the enclosing if, range or with"},
	{"unexpected \"=\" in operand", "= assigns to a $variable only", "to compare, write {{ eq A B }}"},
	{"non executable command in pipeline", "a function must follow |", "write one such as default or quote"},
	{"{{break}} outside {{range}}", "break exists only inside range", ""},
	{"{{continue}} outside {{range}}", "continue exists only inside range", ""},
	{" in template clause", "template, define and block do not exist here", insteadOfDefine},
	{"unexpected <define>", noDefine, insteadOfDefine},
	{" in define clause", noDefine, insteadOfDefine},
	{" in block clause", noDefine, insteadOfDefine},
	{"unexpected \"}\" in operand", "there is one } too many or too few", "expressions are written {{ like this }}"},
	{"unexpected \"{\" in", "there is one { too many", "expressions are written {{ like this }}"},
	{"unexpected \"}\"", "there is one } too many or too few", "expressions are written {{ like this }}"},
	{"unexpected . after term", "a literal has no fields", "remove the dot"},
	{"expected :=", "a colon is not part of a name", "other keys are read with get; to set a $variable, write {{ $name := VALUE }}"},
	{"too many declarations", "an expression sets one $variable, and range at most two", "write {{ range $index, $element := LIST }}"},
	{"range can only initialize variables", "range sets $variables only", "write {{ range $index, $element := LIST }}"},
	{" in {{break}}", "break takes no argument", "write {{ break }}"},
	{" in {{continue}}", "continue takes no argument", "write {{ continue }}"},
	{" in input", "else if belongs to if, else with to with", "write {{ else }}, and begin a block of its own after it"},
	{" in else", "else if belongs to if, else with to with", "write {{ else }}, and begin a block of its own after it"},
	{"unexpected ", "", "write a value or a function there; strings are written in double quotes"},
}
