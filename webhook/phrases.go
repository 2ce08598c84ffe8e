package webhook

import "regexp"

// The API server says only in English what is wrong with an object and, of a value of a wrong
// type, at which field. These are its words, with the version of Kubernetes in which they were
// seen and the code that writes them. TestPhrases asks a real API server for each of them, so
// it fails when a newer version says it otherwise.
var (
	// phraseMistyped begins what server-side apply says about values of a wrong type.
	// 1.37: apimachinery, util/managedfields/internal/structuredmerge.go
	phraseMistyped = regexp.MustCompile(`failed to create typed patch object`)
	// phraseMistypedField matches one line of such a message: the field, and what it should be.
	// 1.37: structured-merge-diff, typed/validate.go and typed/helpers.go
	phraseMistypedField = regexp.MustCompile(
		`(?m)(?:^|: |\s)(\.[^\s:]*(?:"[^"]*"[^\s:]*)*): (expected [a-z]+|field not declared in schema|[^\n]*)`)
	// phraseUnconverted begins what server-side apply says about values that have the right
	// type, but not the right form, such as quantities. Its code is that of an internal error.
	// 1.37: apimachinery, util/managedfields/internal/structuredmerge.go
	phraseUnconverted = regexp.MustCompile(`failed to convert new object`)
)

const (
	// phraseUndeclared is said of a field that the kind does not have.
	// 1.37: structured-merge-diff, typed/validate.go
	phraseUndeclared = "field not declared in schema"
	// phraseDuplicate begins what is said of two entries of a list with the same key.
	// 1.37: structured-merge-diff, typed/validate.go
	phraseDuplicate = "duplicate entries"
	// phraseNoDryRun is said if another webhook has side effects.
	// 1.37: apiserver, admission/plugin/webhook/errors/statuserror.go
	phraseNoDryRun = "does not support dry run"
	// phraseNoImpersonation is said to who lacks the verb impersonate.
	// 1.37: apiserver, endpoints/handlers/responsewriters/errors.go
	phraseNoImpersonation = "cannot impersonate"
	// phraseNoLetter is said of a port that has the form of a number, and of the type string.
	// 1.37: apimachinery, util/validation/validation.go
	phraseNoLetter = "at least one letter"
	// phraseLabel is said of values of labels, phraseKey of keys in ConfigMaps and Secrets, and
	// phraseName of names.
	// 1.37: apimachinery, api/validate/content and util/validation/validation.go
	phraseLabel = "a valid label must"
	phraseKey   = "a valid config key must"
	phraseName  = "RFC 1123"
)

// phraseTypes are the types that the API server expects, in the words of [phraseMistypedField], with
// ours and the template function that converts to it.
// 1.37: structured-merge-diff, typed/validate.go and typed/helpers.go
var phraseTypes = map[string]struct{ expected, function string }{
	"expected numeric": {"a number", " | int"},
	"expected string":  {"a string", " | toString"},
	"expected boolean": {"true or false", ` | eq "true"`},
	"expected list":    {"a list", ""},
	"expected map":     {"a map", ""},
}
