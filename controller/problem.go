package controller

import (
	"errors"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/apply"
	"akri.sh/akri/controller/confine"
)

// problem is something that keeps a parent's objects from being as they should
// be, in words for the Configuration's author.
type problem struct {
	// reason is a condition reason of api/v0.
	reason string
	// message names the template, the field if there is one, the cause and the
	// remedy.
	message string
	// heals: nobody needs to act, another attempt may succeed.
	heals bool
}

// failed makes a problem of an object's error. This is the one place where error
// types become condition reasons.
func failed(origin string, err error) problem {
	found := problem{reason: v0.ReasonApplyFailed, message: origin + ": " + err.Error(), heals: true}
	if refused, ok := errors.AsType[*confine.RefusedError](err); ok {
		found.reason, found.heals = v0.ReasonRefused, false
		found.message = origin + ": " + refused.Error()
	} else if answer, ok := errors.AsType[*apply.Error](err); ok {
		found.reason = answer.Reason
	}
	return found
}
