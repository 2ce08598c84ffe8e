package details

import (
	"regexp"

	"akri.sh/akri/internal/text"
)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// CheckVariable returns the mistake in the name of a property, which becomes an environment variable.
// The name is a key below the place.
func CheckVariable(place, name string) error {
	if variableName.MatchString(name) {
		return nil
	}
	return Faultf(place+"."+text.Truncate(name, MaxQuoted), "not a name for an environment variable").
		Hintf("use letters, digits and underscores, and no digit first")
}
