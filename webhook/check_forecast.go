package webhook

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/controller/templates"
	"akri.sh/akri/internal/finding"
	"akri.sh/akri/templating"
)

// maxInstances limits the Instances for which an update is tried.
const maxInstances = 20

// maxForecastRequests limits the dry runs of a forecast. Each Instance gets the same
// share of them.
const maxForecastRequests = 200

// affectedInstances are the existing Instances of a Configuration, as far as they are
// tried.
type affectedInstances struct {
	names []string
	// more is set if there are more than maxInstances.
	more bool
	// properties are those that the first one will have after the update.
	properties map[string]string
}

// listAffected returns the Instances that an update affects. It finds them by the label that
// agents set. One without it has not been seen by an agent yet: it comes from Akri before
// agents took it over, or somebody has written it. It is not tried, though the controller
// will render the templates for it.
func (c *Chain) listAffected(ctx context.Context, r admissionRequest) (affectedInstances, []Finding) {
	var result affectedInstances
	if r.old == nil {
		return result, nil
	}
	page, err := c.rows(ctx, v0.InstanceResource, r.configuration.Namespace, metav1.IncludeNone,
		metav1.ListOptions{LabelSelector: v0.LabelConfiguration + "=" + r.configuration.Name, Limit: maxInstances})
	if err != nil {
		return result, inconclusive("spec", fmt.Sprintf("could not list the Instances: %v", err))
	}
	result.names, result.more = page.names(), page.Metadata.Continue != ""
	if len(result.names) == 0 {
		return result, nil
	}
	for _, name := range result.names { // the first one that is not being deleted
		instance, err := c.readAffected(ctx, r, name)
		if err != nil {
			return result, inconclusive("spec", fmt.Sprintf("could not read an Instance: %v", err))
		}
		if instance != nil {
			result.properties = instance.Spec.BrokerProperties
			break
		}
	}
	return result, nil
}

// readAffected returns an Instance with the properties that it will have after the update, or
// nil if it is no longer affected.
func (c *Chain) readAffected(ctx context.Context, r admissionRequest, name string) (*v0.Instance, error) {
	instance := &v0.Instance{}
	if err := c.live.Get(ctx, client.ObjectKey{Namespace: r.configuration.Namespace, Name: name}, instance); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if instance.Spec.ConfigurationName != r.configuration.Name || instance.DeletionTimestamp != nil {
		return nil, nil
	}
	instance.Spec.BrokerProperties = templates.PropertiesAfterUpdate(r.old, r.configuration, instance)
	return instance, nil
}

// checkForecast warns the author of an update about the effect on existing devices: it
// computes the controller's plan for each Instance, and sends the steps as dry
// runs. It does not check whether objects have changed since they were applied: the
// controller repairs them in any case.
func (o *objectReview) checkForecast(ctx context.Context, affected affectedInstances) []Finding {
	predictions := make([]prediction, len(affected.names))
	inParallel(len(predictions), func(i int) {
		predictions[i] = o.predict(ctx, affected.names[i], maxForecastRequests/len(predictions))
	})
	return summary(affected, predictions)
}

// predict computes the plan for an Instance and tries its steps, up to a number of dry runs.
func (o *objectReview) predict(ctx context.Context, name string, dryRuns int) prediction {
	instance, err := o.readAffected(ctx, o.r, name)
	if instance == nil {
		return prediction{gone: err == nil, unknown: err != nil}
	}
	steps, result := o.plan(ctx, instance)
	devices := o.devices
	devices.siblings = slices.Clone(devices.siblings)
	for _, step := range steps {
		devices.siblings = append(devices.siblings, step.Ref)
	}
	for _, step := range steps {
		if step.Action == plan.Create || step.Action == plan.Update {
			if dryRuns == 0 {
				result.unknown = true
				continue
			}
			dryRuns--
		}
		result = result.plus(o.try(ctx, step, devices))
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

// plan returns the controller's plan for an Instance, with the contents of as many objects as
// may be held, and the prediction before its steps are tried.
func (o *objectReview) plan(ctx context.Context, instance *v0.Instance) ([]plan.Step, prediction) {
	var result prediction
	var desired []plan.Desired
	var held int64
	parent := ownership.InstanceParent(instance)
	complete := true
	diagnostics := o.compiled.Instance.Each(templates.InstanceValues(o.r.configuration, instance), func(object templating.Object) {
		wants, problems := plan.Desire(o.mapper, o.policy, parent, []templating.Object{object}, o.compiled.Place)
		held += object.Allocated
		for _, want := range wants {
			if held > heldBytes {
				want.Content = nil
			}
			desired = append(desired, want)
		}
		complete = complete && len(problems) == 0
		result = result.plus(predictProblems(problems))
	}, func() bool { return ctx.Err() != nil })
	if ctx.Err() != nil {
		return nil, prediction{unknown: true}
	}
	for _, found := range o.compiled.Diagnosed(v0.ReasonRenderFailed, diagnostics) {
		result.failures = append(result.failures, found.Error())
	}
	return plan.Compute(plan.Input{
		Parent:   parent,
		Desired:  desired,
		Observed: observed(instance),
		Recorded: instance.Status.Resources,
		Complete: complete && len(diagnostics) == 0,
	}), result
}

// predictProblems returns the prediction for objects that cannot be applied.
func predictProblems(problems []*problem.Error) prediction {
	var result prediction
	for _, found := range problems {
		switch found.Reason {
		case v0.ReasonKindUnavailable: // checkObjects has reported it
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
				State:             ownership.State{UID: types.UID(entry.UID), Owner: instance.UID, Applied: entry.ManagedFieldsHash != ""},
				ManagedFieldsHash: entry.ManagedFieldsHash,
			}
		}
	}
	return result
}

// try predicts the effect of a step. It sends a step that applies an object as a dry
// run.
func (o *objectReview) try(ctx context.Context, step plan.Step, devices deviceFactory) prediction {
	switch step.Action {
	case plan.Delete, plan.Release:
		return prediction{prune: true}
	case plan.Create, plan.Update:
	default:
		return prediction{}
	}
	if step.Desired.Content == nil {
		return prediction{unknown: true}
	}
	if step.Claim.Adopt == ownership.AdoptAny {
		step.Claim.Adopt = ownership.AdoptNone // as for made-up devices
	}
	action, _, err := o.client.Do(ctx, step)
	if action == plan.Recreate && err == nil {
		return prediction{recreate: true}
	}
	// The values are those of a device, and the message may quote an object.
	tmpl := candidateOf(o.candidates, templating.InstanceLevel, int(step.Desired.Template))
	interpreter := apiAnswer{candidate: tmpl, want: step.Desired, devices: devices, update: o.r.old != nil, existing: true}
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
