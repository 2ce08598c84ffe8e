package v0

import "regexp"

// The one spelling of apiVersion and kind in templates. The API server reads "/v1" as
// "v1"; a policy that compares strings does not. The schema has the same patterns.
var (
	apiVersionPattern = regexp.MustCompile(
		`^(v[0-9]+((alpha|beta)[0-9]+)?|[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/[a-z]([-a-z0-9]*[a-z0-9])?)$`)
	kindPattern = regexp.MustCompile(`^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$`)
)

// ValidAPIVersion reports whether a template's apiVersion is the version of the core
// group or GROUP/VERSION, spelled as API servers do.
func ValidAPIVersion(apiVersion string) bool { return apiVersionPattern.MatchString(apiVersion) }

// ValidKind reports whether a template's kind is a name that a kind may have.
func ValidKind(kind string) bool { return kindPattern.MatchString(kind) }
