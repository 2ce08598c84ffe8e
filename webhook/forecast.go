package webhook

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/apply"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/controller/templates"
	"akri.sh/akri/templating"
)

// forecast warns the author of an update about the effect on existing devices: it
// computes the controller's plan for each Instance, and sends the steps as dry
// runs. It does not check whether objects have changed since they were applied: the
// controller repairs them in any case.
func (c *Chain) forecast(
	ctx context.Context, r request, compiled *templates.Templates, candidates []*candidate, affected affectedInstances, devices deviceFactory,
) []Finding {
	if len(affected.instances) == 0 {
		return nil
	}
	client, err := c.client(r.configuration)
	if err != nil {
		return nil // dryRun has reported it
	}
	predictions := make([]prediction, len(affected.instances))
	requests := newParallel()
	for i := range affected.instances {
		requests.run(func() {
			steps, planned := c.plan(r.configuration, compiled, &affected.instances[i])
			for _, step := range steps {
				planned = planned.plus(dryRunStep(ctx, client, step, answer{
					candidate: candidateOf(candidates, step.Desired), want: step.Desired, devices: devices, update: r.old != nil,
				}))
			}
			predictions[i] = planned
		})
	}
	requests.wait()
	return summary(affected, predictions)
}

// prediction is the effect of an update on one Instance.
type prediction struct {
	change, recreate, prune bool
	// unknown is set if part of it could not be predicted.
	unknown  bool
	failures []string
}

func (p prediction) plus(other prediction) prediction {
	return prediction{
		change: p.change || other.change, recreate: p.recreate || other.recreate, prune: p.prune || other.prune,
		unknown:  p.unknown || other.unknown,
		failures: append(p.failures, other.failures...),
	}
}

// plan returns the controller's plan for an Instance, and the prediction before its
// steps are tried.
func (c *Chain) plan(configuration *v0.Configuration, compiled *templates.Templates, instance *v0.Instance) ([]plan.Step, prediction) {
	var result prediction
	values := templates.InstanceValues(configuration, instance)
	properties := map[string]string{}
	maps.Copy(properties, values.Instance.Properties)
	maps.Copy(properties, configuration.Spec.BrokerProperties) // as the agents will
	values.Instance.Properties = properties
	objects, diagnostics := compiled.Instance.Render(values)
	for _, found := range compiled.Diagnosed(templating.InstanceLevel, v0.ReasonRenderFailed, diagnostics) {
		result.failures = append(result.failures, inSpec(found.Message))
	}
	parent := ownership.InstanceParent(instance)
	place := func(origin templating.Origin) string { return inSpec(compiled.Place(origin.Level, origin.String())) }
	desired, problems := plan.Desire(c.mapper, c.policy, parent, objects, place)
	for _, found := range problems {
		switch found.Reason {
		case v0.ReasonKindUnavailable: // dryRun has reported it
		case v0.ReasonRefused, v0.ReasonConflict:
			result.failures = append(result.failures, found.Message)
		default:
			result.unknown = true
		}
	}
	return plan.Compute(plan.Input{
		Parent:   parent,
		Desired:  desired,
		Observed: observed(instance),
		Recorded: instance.Status.Resources,
		Complete: len(result.failures)+len(problems) == 0,
	}), result
}

// observed returns the objects in an Instance's inventory as if they had not
// changed since they were applied.
func observed(instance *v0.Instance) map[inventory.Ref]plan.Observed {
	result := map[inventory.Ref]plan.Observed{}
	for _, entry := range instance.Status.Resources {
		if entry.UID != "" {
			result[inventory.RefOf(entry)] = plan.Observed{UID: types.UID(entry.UID), Owner: instance.UID, Fields: entry.Fields}
		}
	}
	return result
}

// dryRunStep predicts the effect of a step. It sends a step that applies an object as
// a dry run.
func dryRunStep(ctx context.Context, client *apply.Client, step plan.Step, interpreter answer) prediction {
	switch step.Action {
	case plan.Delete, plan.Release:
		return prediction{prune: true}
	case plan.Create, plan.Update:
	default:
		return prediction{}
	}
	if step.Claim.Adopt == ownership.AdoptAny {
		step.Claim.Adopt = ownership.AdoptNone // as for made-up devices
	}
	action, _, err := client.Do(ctx, step)
	if action == plan.Recreate && err == nil {
		return prediction{recreate: true}
	}
	if problem.Reason(err) == v0.ReasonImmutable {
		return prediction{failures: []string{fmt.Sprintf("%s: %s", step.Ref, interpreter.quote(err.Error()))}}
	}
	findings := interpreter.interpret(err)
	switch {
	case len(findings) == 0:
		return prediction{change: true}
	case findings[0].Level == Inconclusive:
		return prediction{unknown: true}
	}
	return prediction{failures: []string{fmt.Sprintf("%s: %s", step.Ref, findings[0])}}
}

// candidateOf returns the template of an Instance's object.
func candidateOf(candidates []*candidate, want *plan.Desired) *candidate {
	for _, c := range candidates {
		if want != nil && c.level == templating.InstanceLevel && c.index == int(want.Template) {
			return c
		}
	}
	return &candidate{place: "spec"}
}

// Limits of the failures that summary names.
const (
	maxFailingInstances    = 3
	maxFailuresPerInstance = 2
)

// summary returns the predictions on one line, and a line for each of the first
// Instances that would fail.
func summary(affected affectedInstances, predictions []prediction) []Finding {
	var change, recreate, prune, unknown int
	var failing []Finding
	for i, p := range predictions {
		for _, count := range []struct {
			total     *int
			predicted bool
		}{{&change, p.change}, {&recreate, p.recreate}, {&prune, p.prune}, {&unknown, p.unknown}} {
			if count.predicted {
				*count.total++
			}
		}
		if len(p.failures) > 0 {
			failing = append(failing, Finding{
				Level: Warn, Place: "Instance " + affected.instances[i].Name,
				Cause: "would fail: " + strings.Join(p.failures[:min(maxFailuresPerInstance, len(p.failures))], "; "),
			})
		}
	}
	if change+recreate+prune+unknown+len(failing) == 0 {
		return nil
	}
	cause := fmt.Sprintf("%d would change, %d would have objects recreated, %d would have objects pruned, %d would fail",
		change, recreate, prune, len(failing))
	if unknown > 0 {
		cause += fmt.Sprintf(", %d could not be checked", unknown)
	}
	place := fmt.Sprintf("of %d Instances", affected.total)
	if affected.total > len(predictions) {
		place = fmt.Sprintf("of the first %d of %d Instances", len(predictions), affected.total)
	}
	return append([]Finding{{Level: Warn, Place: place, Cause: cause}}, failing[:min(len(failing), maxFailingInstances)]...)
}
