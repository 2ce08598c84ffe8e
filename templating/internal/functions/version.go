package functions

import (
	"math"

	"github.com/Masterminds/semver/v3"

	"akri.sh/akri/templating/internal/budget"
	"akri.sh/akri/templating/internal/fault"
	"akri.sh/akri/templating/internal/value"
)

var versionFunctions = []Function{
	{Name: "semver", What: "the parts of a semantic version: major, minor, patch, prerelease, metadata", takes: "string", slow: true,
		Example: `(semver "1.2.3-rc1").minor`, Result: `2`, Unlike: "returns an object with methods",
		run: func(_ *budget.Budget, args []any) (any, error) {
			v, err := version(args[0].(string))
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
		}},
	{Name: "semverCompare", What: "whether a version is within a range", takes: "string string", slow: true,
		Example: `semverCompare ">=1.2, <2" "1.4.0"`, Result: `true`, Unlike: "fails with the strings in the message",
		run: func(b *budget.Budget, args []any) (any, error) {
			ranges := args[0].(string)
			if len(ranges) > maxPattern {
				return nil, b.Exhaustf("", "ranges of versions are limited to %d bytes", maxPattern)
			}
			if err := b.Pay(int64(64*len(ranges)), int64(64*len(ranges))); err != nil {
				return nil, err
			}
			constraint, err := semver.NewConstraint(ranges)
			if err != nil {
				return nil, fault.Hintf("write it like >=1.2, <2", "argument 1 is not a range of versions")
			}
			v, err := version(args[1].(string))
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
