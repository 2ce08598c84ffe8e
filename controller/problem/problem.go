package problem

import (
	"errors"
	"fmt"
	"strings"

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
}

// Of returns the problem of an error. origin is the place in the Configuration.
func Of(origin string, err error) Problem {
	problem := Problem{Reason: v0.ReasonApplyFailed, Message: origin + ": " + err.Error(), Heals: true}
	if found, ok := errors.AsType[*Error](err); ok {
		problem.Reason, problem.Heals = found.Reason, found.Heals
		problem.Message = origin + ": " + found.Error()
	}
	return problem
}

// Retry returns an error that names the problems that another attempt may solve,
// or nil if there is none.
func Retry(problems []Problem) error {
	var messages []string
	for _, problem := range problems {
		if problem.Heals {
			messages = append(messages, problem.Message)
		}
	}
	if len(messages) == 0 {
		return nil
	}
	return fmt.Errorf("not everything could be applied: %s", strings.Join(messages, "; "))
}
