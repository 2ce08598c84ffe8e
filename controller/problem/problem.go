package problem

import (
	"errors"

	v0 "akri.sh/akri/api/v0"
)

// Problem is an error at a place in a Configuration.
type Problem struct {
	// Reason is a condition reason of api/v0.
	Reason string
	// Message names the template, the field if there is one, the cause and the
	// remedy.
	Message string
	// Heals reports that another attempt may succeed without intervention.
	Heals bool
	// Unavailable reports that the API server did not answer. The same request may
	// succeed as soon as it does.
	Unavailable bool
}

// Of returns the problem of an error. origin is the place in the Configuration.
func Of(origin string, err error) Problem {
	problem := Problem{Reason: v0.ReasonApplyFailed, Message: origin + ": " + err.Error(), Heals: true}
	if found, ok := errors.AsType[*Error](err); ok {
		problem.Reason, problem.Heals = found.Reason, found.Heals
		problem.Message = origin + ": " + found.Error()
	}
	if unavailable(err) {
		problem.Reason, problem.Heals, problem.Unavailable = v0.ReasonServerUnavailable, true, true
		problem.Message = origin + ": " + describeUnavailable(err)
	}
	return problem
}
