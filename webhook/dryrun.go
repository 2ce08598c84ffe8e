package webhook

import (
	"bytes"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/apply"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/templating"
	"akri.sh/akri/templating/sample"
)

// dryRun sends an object of each template to the API server as a dry run, with the
// permissions that the controller will apply it with.
func (c *cluster) dryRun(ctx context.Context, r request, renderings []renderedTemplate, devices deviceFactory) []Finding {
	client, err := c.client(r.configuration)
	if err != nil {
		return []Finding{{Level: Inconclusive, Place: "spec", Cause: err.Error()}}
	}
	findings := make([][]Finding, len(renderings))
	requests := newParallel()
	for i, rendering := range renderings {
		requests.run(func() { findings[i] = dryRunAlternatives(ctx, client, r, rendering, devices) })
	}
	requests.wait()
	return unique(slices.Concat(findings...))
}

// dryRunAlternatives sends the alternatives of a template until the API server
// accepts one. If it accepts none, the findings about the first are returned.
func dryRunAlternatives(ctx context.Context, client *apply.Client, r request, rendering renderedTemplate, devices deviceFactory) []Finding {
	if findings := rendering.unmapped(); len(findings) > 0 {
		return findings
	}
	var first []Finding
	var previous []byte
	for _, object := range rendering.alternatives {
		current := canonical(object)
		if bytes.Equal(previous, current) {
			continue
		}
		previous = current
		object.Content = runtime.DeepCopyJSON(object.Content)
		want, err := plan.NewDesired(parentOf(r.configuration, rendering.level), object, rendering.resource)
		if err != nil {
			return []Finding{{Level: Deny, Place: rendering.place, Cause: err.Error()}}
		}
		_, err = client.Create(ctx, &want, claimFor(r.configuration, want))
		findings := answer{rendering.candidate, &want, devices, r.old != nil}.interpret(err)
		if !denied(findings) {
			return findings
		}
		if first == nil {
			first = findings
		}
	}
	return first
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
func claimFor(configuration *v0.Configuration, want plan.Desired) ownership.Claim {
	claim := ownership.Claim{Parent: ownership.ConfigurationParent(configuration)}
	if want.Orphan {
		claim.Adopt = ownership.AdoptApplied
	}
	return claim
}
