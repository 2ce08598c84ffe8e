package apply

import (
	"context"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/objects"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/templating"
)

// Do sends the request of a step that applies an object. It returns the action that
// was taken, with the object as the API server returned it if one was written:
//
//   - [plan.Skip] instead of Create if the object belongs to another owner and the
//     template accepts that
//   - [plan.Recreate] instead of Update if the change touches an immutable field
//     and the template allows the object to be recreated; the error then says
//     whether the API server would reject the new object
//   - the action itself otherwise
//
// Do deletes nothing: the caller recreates and prunes. Through a transport
// guarded by [DryRunOnly], the same requests are dry runs.
func (c *Client) Do(ctx context.Context, step plan.Step) (plan.Action, objects.Answer, error) {
	want := step.Desired
	switch step.Action {
	case plan.Conflict:
		return step.Action, nil, ConflictError(step.Ref.String(), step.Claim, step.State)
	case plan.Create:
		object, err := c.Create(ctx, want, step.Claim)
		if want.OnConflict == templating.ConflictSkip && problem.Reason(err) == v0.ReasonConflict {
			return plan.Skip, nil, nil
		}
		return step.Action, object, err
	case plan.Update:
		var version string
		if step.TakeOver {
			var err error
			if version, err = c.takeOver(ctx, step); err != nil {
				return step.Action, nil, err
			}
		}
		object, err := c.Update(ctx, want, step.UID, version)
		if want.Recreates() && problem.Reason(err) == v0.ReasonImmutable {
			return plan.Recreate, nil, c.Try(ctx, want)
		}
		return step.Action, object, err
	}
	return step.Action, nil, nil
}
