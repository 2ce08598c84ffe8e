package text

import "strings"

// Nearest returns the known name most similar to the given one, or "" if none is similar.
// A letter in the wrong case counts as half a mistake. One letter in three may be
// wrong.
func Nearest(name string, known []string) string {
	best, bestDistance := "", 2*(len(name)/3)+1
	for _, candidate := range known {
		if strings.EqualFold(name, candidate) {
			return candidate
		}
		if d := distance(name, candidate, bestDistance); d < bestDistance {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// distance counts the insertions, deletions, replacements and swaps of neighbours
// that turn a into b, as 2 each, and changes of case, as 1. It may stop at limit.
func distance(a, b string, limit int) int {
	const maxLength = 64
	difference := len(a) - len(b)
	if len(a) > maxLength || len(b) > maxLength || 2*max(difference, -difference) >= limit {
		return limit
	}
	var rows [3][maxLength + 1]int
	for j := range len(b) + 1 {
		rows[0][j] = 2 * j
	}
	for i := 1; i <= len(a); i++ {
		row, above, twoAbove := &rows[i%3], &rows[(i+2)%3], &rows[(i+1)%3]
		row[0] = 2 * i
		for j := 1; j <= len(b); j++ {
			replace := above[j-1]
			switch {
			case a[i-1] == b[j-1]:
			case lowerByte(a[i-1]) == lowerByte(b[j-1]):
				replace++
			default:
				replace += 2
			}
			row[j] = min(replace, above[j]+2, row[j-1]+2)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], twoAbove[j-2]+2)
			}
		}
	}
	return rows[len(a)%3][len(b)]
}

func lowerByte(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
