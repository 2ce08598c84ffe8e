package details

import (
	"regexp"
	"strings"

	"akri.sh/akri/internal/text"
)

// maxPathBytes bounds a path.
const maxPathBytes = 1024

// element matches a key or an index, in which a backslash is before each punctuation mark that
// has a meaning in gjson, or may get one.
const element = `(?:[\w :-]|[^\x00-\x7f]|\\[[:punct:]])+`

var (
	plainPath = regexp.MustCompile(`^` + element + `(?:\.` + element + `)*$`)
	// brackets matches an index or a key as jq and JavaScript write it.
	brackets = regexp.MustCompile(`\[(?:(\d+)|'([^']*)'|"([^"]*)")\]`)
	// meaningful matches what needs a backslash, and plainMarks those marks that have no meaning
	// in gjson or in another language for paths.
	meaningful = regexp.MustCompile(`[^\w :\x80-\x{10ffff}-]`)
	plainMarks = regexp.MustCompile("[$%&+,;^`~]")
)

// CheckPath returns the mistake in the path of a value in JSON, which is one of gjson: keys and
// indexes with periods between them, such as info.ports.0.name. Its queries, wildcards and
// modifiers are mistakes, because their costs depend on what a device sends. The prefix is what
// precedes the path at its place in discoveryDetails.
func CheckPath(place, prefix, path string) error {
	if len(path) <= maxPathBytes && plainPath.MatchString(path) {
		return nil
	}
	fault := Faultf(place, "%q is not a path", text.Truncate(prefix+path, 100))
	// JSONPath begins with a dollar sign, jq with a period, and JSON Pointer with a slash.
	right := brackets.ReplaceAllStringFunc(strings.TrimPrefix(path, "$"), func(found string) string {
		parts := brackets.FindStringSubmatch(found)
		return "." + parts[1] + meaningful.ReplaceAllString(parts[2]+parts[3], `\$0`)
	})
	for _, right := range []string{right, strings.ReplaceAll(right, "/", "."), plainMarks.ReplaceAllString(right, `\$0`)} {
		right = strings.TrimPrefix(right, ".")
		if len(right) > maxPathBytes || !plainPath.MatchString(right) {
			continue
		}
		if strings.Contains(path, "/") && !strings.Contains(right, "/") {
			return fault.Hintf(`write %s%s, or \/ for a slash in a key`, prefix, right)
		}
		return fault.Hintf("write %s%s", prefix, right)
	}
	return fault.Hintf("write keys and indexes such as %sinfo.ports.0.name, with a backslash before a punctuation mark in a key; "+
		"queries, wildcards and modifiers are not supported", prefix)
}
