package webhook

import (
	"context"
	"errors"
	"fmt"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/apply"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/templating"
	"akri.sh/akri/templating/sample"
)

// checkObjects renders the templates for made-up devices, and sends an object of each to the
// API server as a dry run, with the permissions that the controller will apply it with. A
// template is valid if that succeeds with one of the guesses. It denies objects that may never be
// rendered, that two devices or two templates would both own, and that the API server rejects,
// and templates that fail. It warns of objects that will not work as expected.
func (o *objectReview) checkObjects(ctx context.Context) []Finding {
	if ctx.Err() != nil { // other checks have used it up, which is not the templates' fault
		return inconclusive("spec", "there was no time left to render the templates")
	}
	verdicts := map[*candidate][]Finding{}
	open := o.candidates
	for i, guess := range o.devices.distinctGuesses() {
		all := o.render(ctx, guess)
		if ctx.Err() != nil {
			if i == 0 {
				return append(o.tooSlow(all), o.warnings...)
			}
			break
		}
		var next []*candidate
		for k, findings := range o.tryAll(ctx, all, open) {
			if i == 0 || !denied(findings) { // if no guess is right, the first one shows best what is wrong
				verdicts[open[k]] = findings
			}
			if denied(findings) && o.devices.guesses(open[k].source) {
				next = append(next, open[k])
			}
		}
		if open = next; len(open) == 0 {
			break
		}
	}
	var findings []Finding
	for _, tmpl := range o.candidates {
		findings = append(findings, verdicts[tmpl]...)
	}
	return unique(append(findings, o.warnings...))
}

// tryAll returns the findings about the objects of each template.
func (o *objectReview) tryAll(ctx context.Context, all round, candidates []*candidate) [][]Finding {
	findings := make([][]Finding, len(candidates))
	inParallel(len(candidates), func(i int) {
		object, wrong := o.choose(all, candidates[i])
		if findings[i] = wrong; len(wrong) == 0 {
			findings[i] = o.dryRun(ctx, candidates[i], object)
		}
	})
	return findings
}

// dryRun sends an object that was rendered for a made-up device; nil if there is none.
func (o *objectReview) dryRun(ctx context.Context, tmpl *candidate, object *rendered) []Finding {
	if findings := tmpl.unmapped(); len(findings) > 0 || object == nil {
		return findings
	}
	switch {
	case object.problem != nil:
		return refused(object.problem)
	case !object.held():
		return inconclusive(tmpl.place, fmt.Sprintf(
			"the objects of one device take more than %d MiB, so this one was not tried with the API server", heldBytes>>20))
	}
	parent := parentOf(o.r.configuration, tmpl.level)
	wants, problems := plan.Desire(o.mapper, o.policy, parent, []templating.Object{object.Object}, o.compiled.Place)
	if len(problems) > 0 {
		return refused(problems[0])
	}
	_, err := o.client.Create(ctx, &wants[0], claimFor(o.r.configuration, &wants[0]))
	_, existing := errors.AsType[*apply.ExistingError](err)
	return apiAnswer{candidate: tmpl, want: &wants[0], devices: o.devices, update: o.r.old != nil, existing: existing}.interpret(err)
}

// refused returns the finding about an object that the controller would not apply either.
func refused(found *problem.Error) []Finding {
	result := denial(found)
	if found.Retryable {
		result.Level = Inconclusive
	}
	return []Finding{result}
}

// parentOf returns the parent of a template's objects: the Configuration, or a
// made-up Instance.
func parentOf(configuration *v0.Configuration, level templating.Level) ownership.Parent {
	parent := ownership.ConfigurationParent(configuration)
	if level == templating.InstanceLevel {
		parent.Level, parent.UID = templating.InstanceLevel, sample.UID
		parent.Name = sample.InstanceName(configuration.Name, 0, false)
	}
	return parent
}

// claimFor claims only what the Configuration itself owns already. Another owner's
// object is not touched, not even by a dry run that would adopt it: the API
// server's response would be about fields that are not the requester's.
func claimFor(configuration *v0.Configuration, want *plan.Desired) ownership.Claim {
	claim := ownership.Claim{Parent: ownership.ConfigurationParent(configuration)}
	if want.Orphans() {
		claim.Adopt = ownership.AdoptAllApplied
	}
	return claim
}
