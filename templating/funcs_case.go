package templating

import (
	"fmt"

	"github.com/Masterminds/sprig/v3"
)

var caseFunctions = []Function{
	{Name: "title", Group: "Text", What: "each word with a capital letter", least: 1, most: 1, slow: true,
		Example: `title "front door"`, Result: `"Front Door"`, run: sprigText("title")},
	{Name: "untitle", Group: "Text", What: "each word with a small first letter", least: 1, most: 1, slow: true,
		Example: `untitle "Front Door"`, Result: `"front door"`, run: sprigText("untitle")},
	{Name: "swapcase", Group: "Text", What: "capital letters small and small ones capital", least: 1, most: 1, slow: true,
		Example: `swapcase "aB"`, Result: `"Ab"`, run: sprigText("swapcase")},
	{Name: "snakecase", Group: "Text", What: "words joined by _", least: 1, most: 1, slow: true,
		Example: `snakecase "FrontDoor"`, Result: `"front_door"`, run: sprigText("snakecase")},
	{Name: "camelcase", Group: "Text", What: "words with capital letters, joined", least: 1, most: 1, slow: true,
		Example: `camelcase "front_door"`, Result: `"FrontDoor"`, run: sprigText("camelcase")},
	{Name: "kebabcase", Group: "Text", What: "words joined by -", least: 1, most: 1, slow: true,
		Example: `kebabcase "FrontDoor"`, Result: `"front-door"`, run: sprigText("kebabcase")},
	{Name: "initials", Group: "Text", What: "the first letter of each word", least: 1, most: 1, slow: true,
		Example: `initials "front door"`, Result: `"fd"`, run: sprigText("initials")},
}

// sprigFunctions is sprig's own map. Only what the table names is ever called.
var sprigFunctions = sprig.GenericFuncMap()

// sprigText is a function of sprig that makes text of text.
func sprigText(name string) impl {
	f, is := sprigFunctions[name].(func(string) string)
	if !is { // a mistake of ours or a change of sprig's: any test shows it
		panic(fmt.Sprintf("sprig has no function %s from text to text", name))
	}
	return text1(f)
}
