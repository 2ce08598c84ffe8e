package functions

import (
	"fmt"

	"github.com/Masterminds/sprig/v3"
)

var caseFunctions = []Function{
	{Name: "title", Group: "Strings", What: "each word with an upper-case first letter", min: 1, max: 1, slow: true,
		Example: `title "front door"`, Result: `"Front Door"`,
		run: sprigText("title")},
	{Name: "untitle", Group: "Strings", What: "each word with a lower-case first letter", min: 1, max: 1, slow: true,
		Example: `untitle "Front Door"`, Result: `"front door"`,
		run: sprigText("untitle")},
	{Name: "swapcase", Group: "Strings", What: "lower-case letters in upper case and the reverse", min: 1, max: 1, slow: true,
		Example: `swapcase "aB"`, Result: `"Ab"`,
		run: sprigText("swapcase")},
	{Name: "snakecase", Group: "Strings", What: "words joined by _", min: 1, max: 1, slow: true,
		Example: `snakecase "FrontDoor"`, Result: `"front_door"`,
		run: sprigText("snakecase")},
	{Name: "camelcase", Group: "Strings", What: "words with upper-case first letters, joined", min: 1, max: 1, slow: true,
		Example: `camelcase "front_door"`, Result: `"FrontDoor"`,
		run: sprigText("camelcase")},
	{Name: "kebabcase", Group: "Strings", What: "words joined by -", min: 1, max: 1, slow: true,
		Example: `kebabcase "FrontDoor"`, Result: `"front-door"`,
		run: sprigText("kebabcase")},
	{Name: "initials", Group: "Strings", What: "the first letter of each word", min: 1, max: 1, slow: true,
		Example: `initials "front door"`, Result: `"fd"`,
		run: sprigText("initials")},
}

// sprigFunctions is sprig's own map. Only functions that the table names are called.
var sprigFunctions = sprig.GenericFuncMap()

// sprigText returns the sprig function of that name, from string to string.
func sprigText(name string) impl {
	f, ok := sprigFunctions[name].(func(string) string)
	if !ok { // a programming error or a change in sprig: every test fails
		panic(fmt.Sprintf("sprig has no function %s from text to text", name))
	}
	return text1(f)
}
