package problem

import (
	"errors"
	"strings"

	v0 "akri.sh/akri/api/v0"
)

// Problem is an error at a place in a Configuration.
type Problem struct {
	// Reason is a condition reason of api/v0.
	Reason string
	// Place is the path of the field, starting with spec; empty if there is none.
	Place string
	// Cause is what happened there.
	Cause string
	// Hint is the remedy; empty if Cause includes it.
	Hint string
	// Retryable reports that another attempt may succeed without intervention.
	Retryable bool
	// Unavailable reports that the API server did not answer. The same request may
	// succeed as soon as it does.
	Unavailable bool
}

// New returns the problem of an error at a place.
func New(place string, err error) Problem {
	problem := Problem{Reason: v0.ReasonApplyFailed, Place: place, Cause: err.Error(), Retryable: true}
	if found, ok := errors.AsType[*Error](err); ok {
		problem.Reason, problem.Cause, problem.Hint, problem.Retryable = found.Reason, found.Cause, found.Hint, found.Retryable
	}
	if unavailable(err) {
		problem.Reason, problem.Cause, problem.Hint = v0.ReasonServerUnavailable, describeUnavailable(err), ""
		problem.Retryable, problem.Unavailable = true, true
	}
	return problem
}

// Message returns the problem on one line: "place: cause: remedy".
func (p Problem) Message() string { return Message(p.Place, p.Cause, p.Hint) }

// Message joins the parts of a message that are not empty.
func Message(parts ...string) string {
	var b strings.Builder
	for _, part := range parts {
		if part != "" && b.Len() > 0 {
			b.WriteString(": ")
		}
		b.WriteString(part)
	}
	return b.String()
}
