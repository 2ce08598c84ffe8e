package packages

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	// afterTag matches a version from git describe: a tag, the number of commits since
	// then, and the commit.
	afterTag = regexp.MustCompile(`^(.+)-([0-9]+)-(g[0-9a-f]+)$`)
	// withoutTag matches the version of a checkout without tags.
	withoutTag = regexp.MustCompile(`^([0-9.]+)-(g[0-9a-f]+|unknown)$`)
	// packageable matches the versions that dpkg and rpm accept without a revision.
	packageable = regexp.MustCompile(`^[0-9][A-Za-z0-9.+~]*$`)
)

// packageVersion returns a version in the form of Debian and RPM, in which "~" sorts
// before nothing at all, and "+" after it: v1.2.3-rc.1 is 1.2.3~rc.1, and v1.2.3-4-g2469d3f,
// four commits after v1.2.3, is 1.2.3+4.g2469d3f.
func packageVersion(version string) (string, error) {
	number, found := strings.CutPrefix(version, "v")
	number, dirty := strings.CutSuffix(number, "-dirty")
	after := ""
	if match := afterTag.FindStringSubmatch(number); match != nil {
		number, after = match[1], "+"+match[2]+"."+match[3]
	} else if match := withoutTag.FindStringSubmatch(number); match != nil {
		number, after = match[1], "+"+match[2]
	}
	if dirty {
		after = strings.TrimPrefix(after+".dirty", ".")
		if !strings.HasPrefix(after, "+") {
			after = "+" + after
		}
	}
	number = strings.ReplaceAll(strings.Replace(number, "-", "~", 1), "-", ".") + after
	if !found || !packageable.MatchString(number) {
		return "", fmt.Errorf("version %q: want a version such as v1.2.3 or v1.2.3-4-g2469d3f", version)
	}
	return number, nil
}
