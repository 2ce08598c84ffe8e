package webhook

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/apply"
	"akri.sh/akri/controller/confine"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/controller/templates"
	"akri.sh/akri/templating"
)

// fleet tells on update what becomes of the devices that exist: it makes the plan
// that the controller will make, and tries its steps. Whether their objects are
// still as recorded is not looked at: the controller repairs them in any case.
type fleet struct {
	*cluster
	policy confine.Policy
}

// fate is what becomes of one Instance.
type fate struct {
	change, recreate, prune bool
	failures                []string
	unknown                 bool
}

func (f fleet) look(ctx context.Context, r *review) []Finding {
	if len(r.instances) == 0 {
		return nil
	}
	client, err := f.client(r)
	if err != nil {
		return nil // said by the dry run
	}
	fates := make([]fate, len(r.instances))
	crew := newCrew()
	for i := range r.instances {
		crew.run(func() { fates[i] = f.fate(ctx, client, r, &r.instances[i]) })
	}
	crew.wait()
	return summary(r, fates)
}

// fate plans and tries one Instance.
func (f fleet) fate(ctx context.Context, client *apply.Client, r *review, instance *v0.Instance) fate {
	var result fate
	values := templates.InstanceValues(r.configuration, instance)
	values.Instance.Properties = maps.Clone(values.Instance.Properties)
	if values.Instance.Properties == nil {
		values.Instance.Properties = map[string]string{}
	}
	maps.Copy(values.Instance.Properties, r.configuration.Spec.BrokerProperties) // as the agents will
	objects, diagnostics := r.compiled.Instance.Render(values)
	for _, found := range r.compiled.Diagnosed(templating.InstanceLevel, v0.ReasonRenderFailed, diagnostics) {
		result.failures = append(result.failures, inSpec(found.Message))
	}
	parent := ownership.InstanceParent(instance)
	place := func(origin templating.Origin) string { return inSpec(r.compiled.Place(origin.Level, origin.String())) }
	desired, problems := plan.Desire(f.mapper, f.policy, parent, objects, place)
	for _, found := range problems {
		switch found.Reason {
		case v0.ReasonKindUnavailable: // the dry run says so
		case v0.ReasonRefused, v0.ReasonConflict:
			result.failures = append(result.failures, found.Message)
		default:
			result.unknown = true
		}
	}
	steps := plan.Compute(plan.Input{
		Parent:   parent,
		Desired:  desired,
		Observed: recorded(instance),
		Recorded: instance.Status.Resources,
		Complete: len(result.failures)+len(problems) == 0,
	})
	for _, step := range steps {
		switch step.Action {
		case plan.Delete, plan.Release:
			result.prune = true
		case plan.Create, plan.Update:
			f.try(ctx, client, r, step, &result)
		}
	}
	return result
}

// recorded takes what the controller applied last for what is there.
func recorded(instance *v0.Instance) map[inventory.Ref]plan.Observed {
	observed := map[inventory.Ref]plan.Observed{}
	for _, entry := range instance.Status.Resources {
		if entry.UID != "" {
			observed[inventory.RefOf(entry)] = plan.Observed{UID: types.UID(entry.UID), Owner: instance.UID, Fields: entry.Fields}
		}
	}
	return observed
}

// try sends a step as a dry run.
func (f fleet) try(ctx context.Context, client *apply.Client, r *review, step plan.Step, result *fate) {
	if step.Claim.Adopt == ownership.AdoptAny {
		step.Claim.Adopt = ownership.AdoptNone // as in the dry run of stand-ins
	}
	action, _, err := client.Do(ctx, step)
	if action == plan.Recreate && err == nil {
		result.recreate = true
		return
	}
	t := trialOf(r, step.Desired)
	if problem.Reason(err) == v0.ReasonImmutable {
		result.failures = append(result.failures, fmt.Sprintf("%s: %s", step.Ref, refusal{r, t, step.Desired.Content}.quote(err.Error())))
		return
	}
	said := refusal{review: r, trial: t, content: step.Desired.Content}.read(err)
	switch {
	case len(said) == 0:
		result.change = true
	case said[0].Level == Inconclusive:
		result.unknown = true
	default:
		result.failures = append(result.failures, fmt.Sprintf("%s: %s", step.Ref, said[0]))
	}
}

// trialOf is the template of a desired object.
func trialOf(r *review, want *plan.Desired) *trial {
	for _, t := range r.trials {
		if t.level == templating.InstanceLevel && t.index == int(want.Template) {
			return t
		}
	}
	return &trial{place: "spec"}
}

// mostFailures is how many Instances that would fail are named.
const mostFailures = 3

// summary is the fates in one line, and a line for each of the first failures.
func summary(r *review, fates []fate) []Finding {
	var change, recreate, prune, unknown int
	var failing []Finding
	for i, fate := range fates {
		for _, count := range []struct {
			to  *int
			yes bool
		}{{&change, fate.change}, {&recreate, fate.recreate}, {&prune, fate.prune}, {&unknown, fate.unknown}} {
			if count.yes {
				*count.to++
			}
		}
		if len(fate.failures) > 0 {
			failing = append(failing, Finding{Level: Warn, Place: "Instance " + r.instances[i].Name, Cause: "would fail: " + strings.Join(fate.failures[:min(2, len(fate.failures))], "; ")})
		}
	}
	if change+recreate+prune+unknown+len(failing) == 0 {
		return nil
	}
	cause := fmt.Sprintf("%d would change, %d have objects recreated, %d have objects pruned, %d fail", change, recreate, prune, len(failing))
	if unknown > 0 {
		cause += fmt.Sprintf(", %d could not be judged", unknown)
	}
	place := fmt.Sprintf("of %d Instances", r.total)
	if r.total > len(fates) {
		place = fmt.Sprintf("of the first %d of %d Instances", len(fates), r.total)
	}
	return append([]Finding{{Level: Warn, Place: place, Cause: cause}}, failing[:min(len(failing), mostFailures)]...)
}
