package webhook

import (
	"context"
	"errors"
	"slices"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/apply"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/controller/templates"
	"akri.sh/akri/internal/finding"
	"akri.sh/akri/templating"
	"akri.sh/akri/templating/sample"
)

// checkDryRun sends an object of each template to the API server as a dry run, with the
// permissions that the controller will apply it with.
func (c *Chain) checkDryRun(
	ctx context.Context, r admissionRequest, compiled *templates.Templates, renderings []renderedTemplate, devices deviceFactory,
) []Finding {
	client, err := c.client(r.configuration)
	if err != nil {
		return inconclusive("spec", err.Error())
	}
	findings := make([][]Finding, len(renderings))
	requests := newParallel()
	for i, rendering := range renderings {
		requests.run(func() { findings[i] = c.dryRunAlternatives(ctx, client, r, compiled, rendering, devices) })
	}
	requests.wait()
	return unique(slices.Concat(findings...))
}

// dryRunAlternatives sends the alternatives of a template until the API server
// accepts one. If it accepts none, the findings about the first are returned.
func (c *Chain) dryRunAlternatives(
	ctx context.Context, client *apply.Client, r admissionRequest, compiled *templates.Templates, rendering renderedTemplate,
	devices deviceFactory,
) []Finding {
	if findings := rendering.unmapped(); len(findings) > 0 {
		return findings
	}
	var first []Finding
	for i, alternative := range rendering.alternatives {
		if i > 0 && alternative.digest == rendering.alternatives[i-1].digest {
			continue
		}
		findings := c.dryRunAlternative(ctx, client, r, compiled, rendering.candidate, alternative, devices)
		if !denied(findings) {
			return findings
		}
		if first == nil {
			first = findings
		}
	}
	return first
}

// dryRunAlternative renders one alternative again and sends it.
func (c *Chain) dryRunAlternative(
	ctx context.Context, client *apply.Client, r admissionRequest, compiled *templates.Templates, tmpl *candidate, alternative outline,
	devices deviceFactory,
) []Finding {
	release, err := c.reserve(ctx, r, alternative.dryRunBytes())
	if err != nil {
		return inconclusive(tmpl.place, err.Error())
	}
	defer release()
	var object templating.Object
	busy := c.compute(ctx, r, func(func() bool) { object, err = alternative.render(compiled) })
	if busy != nil {
		return inconclusive(tmpl.place, busy.Error())
	}
	if err != nil {
		return []Finding{{Deny, finding.Mistake{Path: tmpl.place, Cause: err.Error()}}}
	}
	wants, problems := plan.Desire(c.mapper, c.policy, parentOf(r.configuration, tmpl.level), []templating.Object{object}, compiled.Place)
	if len(problems) > 0 {
		return []Finding{expected(problems[0])}
	}
	want := &wants[0]
	_, err = client.Create(ctx, want, claimFor(r.configuration, want))
	return apiAnswer{candidate: tmpl, want: want, devices: devices, update: r.old != nil, existing: aboutExisting(err)}.interpret(err)
}

// refsOf returns the objects that templates render.
func refsOf(renderings []renderedTemplate) []inventory.Ref {
	var refs []inventory.Ref
	for _, rendering := range renderings {
		for _, alternative := range rendering.alternatives {
			refs = append(refs, alternative.ref)
		}
	}
	return refs
}

// expected returns the finding for a problem that the controller would have, too: it
// denies the request unless the problem may heal.
func expected(err *problem.Error) Finding {
	found := denial(err)
	if err.Retryable {
		found.Level = Inconclusive
	}
	return found
}

// aboutExisting reports whether a response to a create is about an object that exists.
func aboutExisting(err error) bool {
	_, existing := errors.AsType[*apply.ExistingError](err)
	return existing
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
	if want.Orphan {
		claim.Adopt = ownership.AdoptAllApplied
	}
	return claim
}
