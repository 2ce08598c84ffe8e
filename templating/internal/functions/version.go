package functions

import (
	"math"

	"github.com/Masterminds/semver/v3"

	"akri.sh/akri/templating/internal/budget"
	"akri.sh/akri/templating/internal/fault"
	"akri.sh/akri/templating/internal/value"
)

var versionFunctions = []Function{
	{Name: "semver", Group: "Versions",
		What: "the parts of a semantic version: major, minor, patch, prerelease, metadata", min: 1, max: 1, slow: true,
		Example: `(semver "1.2.3-rc1").minor`, Result: `2`,
		run: text1e(func(s string) (any, error) {
			v, err := version(s)
			if err != nil {
				return nil, err
			}
			if max(v.Major(), v.Minor(), v.Patch()) > math.MaxInt64 {
				return nil, value.ErrOverflow
			}
			return map[string]any{
				"major": int64(v.Major()), "minor": int64(v.Minor()), "patch": int64(v.Patch()),
				"prerelease": v.Prerelease(), "metadata": v.Metadata(),
			}, nil
		})},
	{Name: "semverCompare", Group: "Versions", What: "whether a version is within a range", min: 2, max: 2, slow: true,
		Example: `semverCompare ">=1.2, <2" "1.4.0"`, Result: `true`,
		run: func(b *budget.Budget, args []any) (any, error) {
			ranges, err := textArg(args, 0)
			if err != nil {
				return nil, err
			}
			s, err := textArg(args, 1)
			if err != nil {
				return nil, err
			}
			if len(ranges) > maxPattern {
				return nil, b.Exhaustf("", "ranges of versions are limited to %d bytes", maxPattern)
			}
			if err := b.Step(int64(64 * len(ranges))); err != nil {
				return nil, err
			}
			if err := b.Allocate(int64(64 * len(ranges))); err != nil {
				return nil, err
			}
			constraint, err := semver.NewConstraint(ranges)
			if err != nil {
				return nil, fault.Hintf("write it like >=1.2, <2", "argument 1 is not a range of versions")
			}
			v, err := version(s)
			if err != nil {
				return nil, err
			}
			return constraint.Check(v), nil
		}},
}

func version(s string) (*semver.Version, error) {
	v, err := semver.NewVersion(s)
	if err != nil || len(s) > 256 {
		return nil, fault.Hintf("versions are written like 1.2.3", "the string is not a semantic version")
	}
	return v, nil
}
