package problem

import (
	"errors"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/finding"
	"akri.sh/akri/internal/text"
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

// Answered returns the error for an answer of the API server, which is repeated at the end:
// it may be long and be truncated. If there is a remedy, the cause includes it.
func Answered(reason, cause string, err error) *Error {
	cause += ": " + text.Truncate(err.Error(), maxAnswer)
	return &Error{Mistake: finding.Mistake{Cause: cause}, Reason: reason, Retryable: true, Err: err}
}

// Refused returns the error for an answer that [ReadRefusal] knows, or nil. what says
// what could not be done, if it is not to apply the object.
func Refused(request Request, what string, err error) *Error {
	found := ReadRefusal(request, err)
	if found == nil {
		return nil
	}
	return Answered(found.Reason, what+found.Mistake.Error()+"; the API server says", err)
}

// Redacted is a response of the API server whose message must not be repeated. It can
// still be classified: it wraps the response.
type Redacted struct {
	Text string // what may be said instead
	Err  error  // the response
}

func (r *Redacted) Error() string { return r.Text }

func (r *Redacted) Unwrap() error { return r.Err }

// Reason returns the condition reason of an error, or "" if the error is nil or
// not an [Error].
func Reason(err error) string {
	if found, ok := errors.AsType[*Error](err); ok {
		return found.Reason
	}
	return ""
}
