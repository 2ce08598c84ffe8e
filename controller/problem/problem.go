package problem

import (
	"errors"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/apply"
	"akri.sh/akri/controller/confine"
)

// Problem is something that keeps a parent's objects from being as they should
// be, in words for the Configuration's author.
type Problem struct {
	// Reason is a condition reason of api/v0.
	Reason string
	// Message names the template, the field if there is one, the cause and the
	// remedy.
	Message string
	// Heals: nobody needs to act, another attempt may succeed.
	Heals bool
}

// Of makes a problem of an object's error. origin is the place in the
// Configuration. This is the one place where error types become condition
// reasons.
func Of(origin string, err error) Problem {
	found := Problem{Reason: v0.ReasonApplyFailed, Message: origin + ": " + err.Error(), Heals: true}
	if refused, ok := errors.AsType[*confine.RefusedError](err); ok {
		found.Reason, found.Heals = v0.ReasonRefused, false
		found.Message = origin + ": " + refused.Error()
	} else if answer, ok := errors.AsType[*apply.Error](err); ok {
		found.Reason = answer.Reason
		found.Heals = answer.Reason != v0.ReasonContested // the controller goes on as fast as is wise
	}
	return found
}
