// Package regexsize estimates how large a regular expression becomes when it is
// compiled: a few characters, such as (a|b){1000}, can compile to megabytes.
package regexsize

import "regexp/syntax"

// Of estimates the number of instructions of a compiled expression, with its repetitions
// expanded. It stops counting above a limit.
func Of(re *syntax.Regexp, limit int) int {
	size := 1 + len(re.Rune)/16
	if re.Op == syntax.OpLiteral {
		size = 1 + len(re.Rune)
	}
	for _, sub := range re.Sub {
		if size += Of(sub, limit); size > limit {
			return size
		}
	}
	if re.Op == syntax.OpRepeat {
		size *= max(re.Max, re.Min, 1) + 1
	}
	return size + 1
}
