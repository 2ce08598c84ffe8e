package details

// Glob reports whether a pattern matches all of a text. In the pattern, * stands for
// any characters and ? for any single one; all others stand for themselves. The time is at
// most proportional to the product of the lengths.
func Glob(pattern, text string) bool {
	wanted, given := []rune(pattern), []rune(text)
	// star is the position after the last *, and resume where its text ends so far.
	i, star, resume := 0, -1, 0
	for j := 0; j < len(given); {
		switch {
		case i < len(wanted) && wanted[i] == '*':
			i++
			star, resume = i, j
		case i < len(wanted) && (wanted[i] == '?' || wanted[i] == given[j]):
			i++
			j++
		case star >= 0:
			resume++
			i, j = star, resume
		default:
			return false
		}
	}
	for i < len(wanted) && wanted[i] == '*' {
		i++
	}
	return i == len(wanted)
}
