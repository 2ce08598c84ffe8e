package problem

import (
	"errors"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/finding"
)

// Error says why an object is not as the Configuration wants it. Whoever creates it may
// not know its path yet; see [At].
type Error struct {
	finding.Mistake
	// Reason is a condition reason of api/v0.
	Reason string
	// Retryable reports that another attempt may succeed without intervention.
	Retryable bool
	// Unavailable reports that the API server did not answer. The same request may
	// succeed as soon as it does.
	Unavailable bool
	// Err is the API server's answer, if there is one.
	Err error
}

func (e *Error) Unwrap() error { return e.Err }

// At returns any error as one at a path in a Configuration.
func At(path string, err error) *Error {
	at := Error{Mistake: finding.Mistake{Cause: err.Error()}, Reason: v0.ReasonApplyFailed, Retryable: true, Err: err}
	if found, ok := errors.AsType[*Error](err); ok {
		at = *found
	}
	if unavailable(err) {
		at.Mistake = finding.Mistake{Cause: describeUnavailable(err)}
		at.Reason, at.Retryable, at.Unavailable = v0.ReasonServerUnavailable, true, true
	}
	at.Path = path
	return &at
}

// Reason returns the condition reason of an error, or "" if the error is nil or
// not an [Error].
func Reason(err error) string {
	if found, ok := errors.AsType[*Error](err); ok {
		return found.Reason
	}
	return ""
}
