package templating

import (
	"fmt"
	"strings"
	"text/template/parse"
	"unicode"
	"unicode/utf8"
)

// text is one string of a template, or one key: plain, a whole expression that
// keeps its type, or expressions in longer text.
type text struct {
	source string
	whole  expr   // exactly one action and nothing around it
	body   []stmt // longer text
	slots  int    // $variables that are alive at the same time
}

// plain reports that there is no expression in the text.
func (t *text) plain() bool { return t.whole == nil && t.body == nil }

// compileText settles all that can be settled about a string. What is wrong with
// it is reported to r.
func compileText(source string, r *resolver) *text {
	if len(source) > MaxExpressionBytes {
		r.report(faultf(-1, "divide it, or put long text without expressions elsewhere",
			"a string with expressions may have %d KiB, this one has %d bytes", MaxExpressionBytes>>10, len(source)))
		return nil
	}
	if !utf8.ValidString(source) {
		r.report(faultf(-1, "save the file as UTF-8", "this is not valid UTF-8"))
		return nil
	}
	root, err := parseText(source)
	if err != nil {
		r.report(err)
		return nil
	}
	t := &text{source: source}
	if action, only := onlyAction(root); only {
		t.whole = r.pipe(action.Pipe)
	} else {
		r.mixed = true
		t.body = r.list(root)
		if t.body == nil {
			t.body = []stmt{} // comments alone: empty text
		}
	}
	t.slots = r.mostSlots
	return t
}

// onlyAction is the action of a text that consists of one and yields a value.
func onlyAction(root *parse.ListNode) (*parse.ActionNode, bool) {
	if root == nil || len(root.Nodes) != 1 {
		return nil, false
	}
	action, is := root.Nodes[0].(*parse.ActionNode)
	return action, is && len(action.Pipe.Decl) == 0
}

// parseText is text/template's parser without its names and its wording.
func parseText(source string) (root *parse.ListNode, f *fault) {
	trees := map[string]*parse.Tree{}
	tree, err := parseTree(source, trees)
	if err != nil {
		return nil, syntaxFault(source, err)
	}
	if len(trees) > 1 || tree.Root == nil {
		return nil, faultf(defineOffset(source), "write the expression where it is needed; repeat with range",
			"define and block do not exist here")
	}
	return tree.Root, nil
}

// treeName is what the parser calls our text; it cannot be the name in a define.
const treeName = "\x00"

func parseTree(source string, trees map[string]*parse.Tree) (tree *parse.Tree, err error) {
	defer func() {
		if p := recover(); p != nil { // none is known; a new one must not end the process
			err = fmt.Errorf("the parser failed")
		}
	}()
	tree = parse.New(treeName)
	tree.Mode = parse.SkipFuncCheck // resolve knows the names, and nearer ones
	return tree.Parse(source, "", "", trees)
}

func defineOffset(source string) int {
	first := -1
	for _, word := range []string{"define", "block"} {
		if at := strings.Index(source, word); at >= 0 && (first < 0 || at < first) {
			first = at
		}
	}
	return first
}

// syntaxFault translates an error of the parser. It knows the line at most; the
// place is found by asking which expression first makes it fail.
func syntaxFault(source string, err error) *fault {
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
	for _, known := range syntaxMistakes {
		if strings.HasPrefix(message, known.message) || known.anywhere && strings.Contains(message, known.message) {
			if known.cause != "" {
				message = known.cause
			}
			message = cut(message, maxQuoted)
			return faultf(failingAction(source), known.hint, "%s", message)
		}
	}
	message = cut(message, maxQuoted)
	return faultf(failingAction(source), "", "%s", message)
}

// failingAction is where the first expression begins with which the text can no
// longer be parsed, whatever follows.
func failingAction(source string) int {
	var starts []int
	for at := 0; ; {
		next := strings.Index(source[at:], "{{")
		if next < 0 {
			break
		}
		starts = append(starts, at+next)
		at += next + 2
	}
	fails := func(i int) bool {
		end := len(source)
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		_, err := parseTree(source[:end], map[string]*parse.Tree{})
		return err != nil && !strings.Contains(err.Error(), "unexpected EOF")
	}
	low, high := 0, len(starts)-1
	for low < high {
		middle := (low + high) / 2
		if fails(middle) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return starts[low]
}

// syntaxMistakes are the parser's messages that people meet, in our words. An
// empty cause keeps the parser's.
var syntaxMistakes = []struct {
	message  string
	anywhere bool
	cause    string
	hint     string
}{
	{message: "unclosed action", cause: "the expression does not end", hint: "write }} after it"},
	{message: "unclosed comment", cause: "the comment does not end", hint: "write */}} after it"},
	{message: "comment ends before closing delimiter", cause: "there is something between a comment and }}", hint: "write {{/* comment */}} and nothing else between the braces"},
	{message: "missing value for", cause: "the expression is empty", hint: `write a value between {{ and }}, or {{ "" }} for empty text`},
	{message: "unexpected EOF", cause: "if, range or with does not end", hint: "write {{ end }} after what it governs"},
	{message: "unexpected {{end}}", cause: "there is nothing here that end could end", hint: "remove it, or write if, range or with before it"},
	{message: "unexpected {{else}}", cause: "there is nothing here that else could belong to", hint: "write if, range or with before it"},
	{message: "expected end; found {{else}}", cause: "there are two else for one if, range or with", hint: "keep one"},
	{message: "unterminated quoted string", cause: "the text in quotes does not end", hint: "write the closing quotation mark"},
	{message: "unterminated raw quoted string", cause: "the text in back quotes does not end", hint: "write the closing back quote"},
	{message: "unterminated character constant", cause: "single quotes hold one character", hint: `write text in double quotes, "like this", or in back quotes`},
	{message: "malformed character constant", cause: "single quotes hold one character", hint: `write text in double quotes, "like this", or in back quotes`},
	{message: "unclosed left paren", cause: "a parenthesis does not close", hint: "write ) where it ends"},
	{message: "unexpected right paren", cause: "a parenthesis closes that was never opened", hint: "remove it, or write ( where it begins"},
	{message: `unexpected ">"`, cause: "there are no operators", hint: "write {{ gt A B }} or {{ ge A B }}"},
	{message: `unexpected "<"`, cause: "there are no operators", hint: "write {{ lt A B }} or {{ le A B }}"},
	{message: `unexpected "&"`, cause: "there are no operators", hint: "write {{ and A B }}"},
	{message: `unexpected "!"`, cause: "there are no operators", hint: "write {{ not A }} or {{ ne A B }}"},
	{message: `unexpected "|" in`, cause: "there are no operators", hint: "write {{ or A B }}"},
	{message: `unexpected "("`, cause: "functions are called without parentheses", hint: `write {{ function A B }} or {{ A | function B }}, and parentheses around a call inside another`},
	{message: "bad character U+005B '['", cause: "there are no brackets", hint: "write {{ index LIST 0 }} or {{ get MAP \"KEY\" }}"},
	{message: "bad character U+007B '{'", cause: "there is a { too many", hint: "variables are bare words: {{ INSTANCE_NAME }}"},
	{message: "bad character U+002D '-'", cause: "a name cannot hold a dash", hint: `write {{ get INSTANCE_PROPERTIES "KEY-WITH-DASH" }}, and spaces around - when a mark to trim is meant`},
	{message: "bad character U+002F '/'", cause: "a name cannot hold a slash", hint: `write {{ get INSTANCE_PROPERTIES "KEY/WITH/SLASH" }}; to divide, write {{ div A B }}`},
	{message: "bad character U+002B '+'", cause: "there are no operators", hint: "write {{ add A B }}"},
	{message: "bad character U+002A '*'", cause: "there are no operators", hint: "write {{ mul A B }}"},
	{message: "unrecognized character in action", cause: "there is a character that has no meaning in an expression", hint: "text is written in double quotes"},
	{message: "bad character", hint: "names hold letters, digits and _; other keys are read with get"},
	{message: `bad number syntax: "+`, cause: "there are no operators", hint: "write {{ add A B }}"},
	{message: `bad number syntax: "-`, cause: "the minus sign has no number", hint: "to subtract, write {{ sub A B }}; to trim, a space after {{- and before -}}"},
	{message: `illegal number syntax: "+`, cause: "there are no operators", hint: "write {{ add A B }}"},
	{message: `illegal number syntax: "-`, cause: "the minus sign has no number", hint: "to subtract, write {{ sub A B }}; to trim, a space after {{- and before -}}"},
	{message: "integer overflow", cause: "the number does not fit into 64 bits", hint: "write it in quotes to make it text"},
	{message: "bad number syntax", hint: `write text in quotes, numbers as 80 or 0.5`},
	{message: "illegal number syntax", hint: `write text in quotes, numbers as 80 or 0.5`},
	{message: "undefined variable", hint: "declare it before: {{ $name := VALUE }}; it ends with the if, range or with around it"},
	{message: "unexpected \"=\" in operand", cause: "= assigns to a $variable only", hint: "to compare, write {{ eq A B }}"},
	{message: "non executable command in pipeline", cause: "what stands after | must be a function", hint: "write a function there, such as default or quote"},
	{message: "{{break}} outside {{range}}", cause: "break exists only inside range"},
	{message: "{{continue}} outside {{range}}", cause: "continue exists only inside range"},
	{message: "unexpected {{define}}", cause: "define and block do not exist here", hint: "write the expression where it is needed; repeat with range"},
	{message: "unexpected <define>", cause: "define and block do not exist here", hint: "write the expression where it is needed; repeat with range"},
	{message: " in define clause", anywhere: true, cause: "define and block do not exist here", hint: "write the expression where it is needed; repeat with range"},
	{message: " in block clause", anywhere: true, cause: "define and block do not exist here", hint: "write the expression where it is needed; repeat with range"},
	{message: "unexpected \"}\" in operand", cause: "there is a } too many or one missing", hint: "expressions are written {{ like this }}"},
	{message: "unexpected \"{\" in", cause: "there is a { too many", hint: "expressions are written {{ like this }}"},
	{message: "unexpected \"}\"", cause: "there is a } too many or one missing", hint: "expressions are written {{ like this }}"},
	{message: "unexpected . after term", cause: "a literal has no fields", hint: "remove the dot"},
	{message: "max expression depth", cause: "the parentheses are nested too deep", hint: "use $variables"},
}
