package webhook

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/apply"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/controller/templates"
	"akri.sh/akri/internal/finding"
	"akri.sh/akri/templating"
)

// maxForecastRequests limits the dry runs of a forecast. Each Instance gets the same
// share of them.
const maxForecastRequests = 200

// checkForecast warns the author of an update about the effect on existing devices: it
// computes the controller's plan for each Instance, and sends the steps as dry
// runs. It does not check whether objects have changed since they were applied: the
// controller repairs them in any case.
func (c *Chain) checkForecast(
	ctx context.Context, r admissionRequest, compiled *templates.Templates, candidates []*candidate, affected affectedInstances,
	devices deviceFactory,
) []Finding {
	if len(affected.names) == 0 {
		return nil
	}
	client, err := c.client(r.configuration)
	if err != nil {
		return nil // checkDryRun has reported it
	}
	predictions := make([]prediction, len(affected.names))
	requests := newParallel()
	for i, name := range affected.names {
		requests.run(func() {
			f := instanceForecast{Chain: c, r: r, compiled: compiled, candidates: candidates, devices: devices, client: client,
				left: maxForecastRequests / len(affected.names)}
			predictions[i] = f.predict(ctx, name)
		})
	}
	requests.wait()
	return summary(affected, predictions)
}

// instanceForecast predicts the effect of an update on one Instance.
type instanceForecast struct {
	*Chain
	r          admissionRequest
	compiled   *templates.Templates
	candidates []*candidate
	devices    deviceFactory
	client     *apply.Client
	// left is how many dry runs may still be sent.
	left int
}

// predict computes the plan for an Instance and tries its steps.
func (f *instanceForecast) predict(ctx context.Context, name string) prediction {
	release, err := f.reserve(ctx, f.r, renderingBytes)
	if err != nil {
		return prediction{unknown: true}
	}
	defer release()
	instance, err := f.readAffected(ctx, f.r, name)
	if instance == nil {
		return prediction{gone: err == nil, unknown: err != nil}
	}
	parent := ownership.InstanceParent(instance)
	var steps []plan.Step
	var outlines map[inventory.Ref]outline
	var result prediction
	err = f.compute(ctx, f.r, func(pass func() bool) {
		steps, outlines, result = f.plan(ctx, f.r.configuration, f.compiled, instance, pass)
	})
	release()
	if err != nil {
		return prediction{unknown: true}
	}
	f.devices.siblings = slices.AppendSeq(slices.Clone(f.devices.siblings), maps.Keys(outlines))
	for _, step := range steps {
		if step.Action == plan.Create || step.Action == plan.Update {
			if f.left == 0 {
				result.unknown = true
				continue
			}
			f.left--
		}
		result = result.plus(f.try(ctx, parent, step, outlines[step.Ref]))
	}
	return result
}

// prediction is the effect of an update on one Instance.
type prediction struct {
	change, recreate, prune bool
	// gone is set if the Instance is being deleted, or belongs to another Configuration.
	gone bool
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

// plan returns the controller's plan for an Instance, with the outlines of the desired
// objects instead of their contents, and the prediction before its steps are tried. After
// each template, pass lets others compute.
func (c *Chain) plan(
	ctx context.Context, configuration *v0.Configuration, compiled *templates.Templates, instance *v0.Instance, pass func() bool,
) ([]plan.Step, map[inventory.Ref]outline, prediction) {
	var result prediction
	values := templates.InstanceValues(configuration, instance)
	parent := ownership.InstanceParent(instance)
	var desired []plan.Desired
	outlines := map[inventory.Ref]outline{}
	complete := true
	diagnostics := compiled.Instance.Each(values, func(object templating.Object) {
		one := outline{origin: object.Origin, ref: refOf(object), allocated: object.Allocated, values: &values}
		wants, problems := plan.Desire(c.mapper, c.policy, parent, []templating.Object{object}, compiled.Place)
		for _, want := range wants {
			want.Content = nil
			desired, outlines[want.Ref] = append(desired, want), one
		}
		complete = complete && len(problems) == 0
		result = result.plus(predictProblems(problems))
	}, func() bool { return ctx.Err() != nil || !pass() })
	if ctx.Err() != nil {
		return nil, nil, prediction{unknown: true}
	}
	for _, found := range compiled.Diagnosed(v0.ReasonRenderFailed, diagnostics) {
		result.failures = append(result.failures, found.Error())
	}
	steps := plan.Compute(plan.Input{
		Parent:   parent,
		Desired:  desired,
		Observed: observed(instance),
		Recorded: instance.Status.Resources,
		Complete: complete && len(diagnostics) == 0,
	})
	return steps, outlines, result
}

// predictProblems returns the prediction for objects that cannot be applied.
func predictProblems(problems []*problem.Error) prediction {
	var result prediction
	for _, found := range problems {
		switch found.Reason {
		case v0.ReasonKindUnavailable: // checkDryRun has reported it
		case v0.ReasonRefused, v0.ReasonConflict:
			result.failures = append(result.failures, found.Error())
		default:
			result.unknown = true
		}
	}
	return result
}

// observed returns the objects in an Instance's inventory as if they had not
// changed since they were applied.
func observed(instance *v0.Instance) map[inventory.Ref]plan.Observed {
	result := map[inventory.Ref]plan.Observed{}
	for _, entry := range instance.Status.Resources {
		if entry.UID != "" {
			result[inventory.RefOf(entry)] = plan.Observed{
				UID: types.UID(entry.UID), Owner: instance.UID, ManagedFieldsHash: entry.ManagedFieldsHash,
			}
		}
	}
	return result
}

// try predicts the effect of a step. It sends a step that applies an object as a dry
// run.
func (f *instanceForecast) try(ctx context.Context, parent ownership.Parent, step plan.Step, desired outline) prediction {
	switch step.Action {
	case plan.Delete, plan.Release:
		return prediction{prune: true}
	case plan.Create, plan.Update:
	default:
		return prediction{}
	}
	release, err := f.reserve(ctx, f.r, desired.dryRunBytes())
	if err != nil {
		return prediction{unknown: true}
	}
	defer release()
	tmpl := candidateOf(f.candidates, templating.InstanceLevel, desired.origin.Index)
	var object templating.Object
	if busy := f.compute(ctx, f.r, func(func() bool) { object, err = desired.render(f.compiled) }); busy != nil || err != nil {
		return prediction{unknown: true}
	}
	wants, problems := plan.Desire(f.mapper, f.policy, parent, []templating.Object{object}, f.compiled.Place)
	if len(problems) > 0 {
		return prediction{unknown: true}
	}
	step.Desired = &wants[0]
	if step.Claim.Adopt == ownership.AdoptAny {
		step.Claim.Adopt = ownership.AdoptNone // as for made-up devices
	}
	action, _, err := f.client.Do(ctx, step)
	if action == plan.Recreate && err == nil {
		return prediction{recreate: true}
	}
	// The values are those of a device, and the message may quote an object.
	interpreter := apiAnswer{candidate: tmpl, want: step.Desired, devices: f.devices, update: f.r.old != nil, existing: true}
	findings := interpreter.interpret(err)
	failing := step.Ref.String()
	if interpreter.namePrivate() {
		failing = step.Ref.Kind
	}
	switch {
	case problem.Reason(err) == v0.ReasonImmutable:
		return prediction{failures: []string{failing + ": " + interpreter.immutable(err)}}
	case len(findings) == 0:
		return prediction{change: true}
	case findings[0].Level == Inconclusive:
		return prediction{unknown: true}
	}
	return prediction{failures: []string{failing + ": " + findings[0].Error()}}
}

// Limits of the failures that summary names.
const (
	maxFailingInstances    = 3
	maxFailuresPerInstance = 2
)

// summary returns the predictions on one line, and a line for each of the first
// Instances that would fail.
func summary(affected affectedInstances, predictions []prediction) []Finding {
	var tried, change, recreate, prune, unknown int
	var failing []Finding
	for i, p := range predictions {
		for _, count := range []struct {
			total     *int
			predicted bool
		}{{&tried, !p.gone}, {&change, p.change}, {&recreate, p.recreate}, {&prune, p.prune}, {&unknown, p.unknown}} {
			if count.predicted {
				*count.total++
			}
		}
		if len(p.failures) > 0 {
			failing = append(failing, Finding{Warn, finding.Mistake{
				Path:  "Instance " + affected.names[i],
				Cause: "would fail: " + strings.Join(p.failures[:min(maxFailuresPerInstance, len(p.failures))], "; and "),
			}})
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
	place := fmt.Sprintf("of %d Instances", tried)
	if affected.more {
		place = fmt.Sprintf("of the first %d Instances", tried)
	}
	return append([]Finding{{Warn, finding.Mistake{Path: place, Cause: cause}}}, failing[:min(len(failing), maxFailingInstances)]...)
}
