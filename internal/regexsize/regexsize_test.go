package regexsize

import (
	"regexp/syntax"
	"strings"
	"testing"
)

// TestOf compares the estimate with what the expression really compiles to.
func TestOf(t *testing.T) {
	const limit = 10_000
	for _, expression := range []string{
		"", "a", "abc.*", "a|b|c", "(x|yz){20}", "((ab){5}c){7}", "a{3,}", "a{0}", `[a-z]+@[a-z]+\.org`, `(?i)\pL\PN`, "(a?){30}",
	} {
		parsed, err := syntax.Parse(expression, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		estimated := Of(parsed, limit)
		program, err := syntax.Compile(parsed.Simplify())
		if err != nil {
			t.Fatal(err)
		}
		if compiled := len(program.Inst); estimated+4 < compiled || estimated > 4*compiled+200 { // the program has some of its own
			t.Errorf("%q: estimated %d, compiled %d", expression, estimated, compiled)
		}
	}
}

func TestOfStops(t *testing.T) {
	const limit = 1000
	for _, expression := range []string{"(x|y){999}", strings.Repeat("x{1000}", 500), strings.Repeat(`\pL`, 1000)} {
		parsed, err := syntax.Parse(expression, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		if got := Of(parsed, limit); got <= limit {
			t.Errorf("%.20q: estimated %d with limit %d", expression, got, limit)
		}
	}
}
