package problem

import "errors"

// Error is an error in words for the author of a Configuration.
type Error struct {
	// Reason is a condition reason of api/v0.
	Reason string
	// Cause is what happened. It includes the remedy if Hint is empty.
	Cause string
	// Hint is the remedy.
	Hint string
	// Retryable reports that another attempt may succeed without intervention.
	Retryable bool
	// Err is the API server's answer, if there is one.
	Err error
}

func (e *Error) Error() string { return Message(e.Cause, e.Hint) }

func (e *Error) Unwrap() error { return e.Err }

// Reason returns the condition reason of an error, or "" if the error is nil or
// not an [Error].
func Reason(err error) string {
	if found, ok := errors.AsType[*Error](err); ok {
		return found.Reason
	}
	return ""
}
