package version

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// afterTag matches a version from git describe: a tag, the number of commits since
// then, and the commit.
var afterTag = regexp.MustCompile(`^(v.+)-([0-9]+)-g[0-9a-f]+$`)

// Compare returns -1, 0 or 1 if a is older than, the same as, or newer than b. It
// returns false if that cannot be told: versions between two tags have an order only
// if they differ in their tag, or in the number of commits since then.
//
// Semantic Versioning would make v1.2.3-4-g2469d3f a pre-release of v1.2.3, though it
// comes four commits after it.
func Compare(a, b string) (order int, ok bool) {
	if a == b {
		return 0, true
	}
	left, leftCommits, ok := split(a)
	if !ok {
		return 0, false
	}
	right, rightCommits, ok := split(b)
	if !ok {
		return 0, false
	}
	order = cmp.Or(left.Compare(right), cmp.Compare(leftCommits, rightCommits))
	return order, order != 0
}

// split returns the tag and the number of commits in a version. It returns false if
// the version has no tag.
func split(version string) (tag *semver.Version, commits int, ok bool) {
	version = strings.TrimSuffix(version, "-dirty")
	if match := afterTag.FindStringSubmatch(version); match != nil {
		version = match[1]
		commits, _ = strconv.Atoi(match[2])
	} else if version == unknown || commitInVersion.MatchString(version) {
		return nil, 0, false
	}
	if !Valid(version) {
		return nil, 0, false
	}
	tag, err := semver.StrictNewVersion(strings.TrimPrefix(version, "v"))
	return tag, commits, err == nil
}
