package webhook

import (
	"context"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/finding"
)

// reviewDetails is checkDetails with the memory and the processor that parsing takes.
func (c *Chain) reviewDetails(ctx context.Context, r admissionRequest) []Finding {
	release, err := c.reserve(ctx, r, detailsCopies*int64(min(len(r.configuration.Spec.DiscoveryHandler.DiscoveryDetails), maxDetailsBytes)))
	if err != nil {
		return []Finding{tooBusy(err)}
	}
	defer release()
	var findings []Finding
	if err := c.compute(ctx, r, func(func() bool) { findings = checkDetails(c.details, r.configuration) }); err != nil {
		return []Finding{tooBusy(err)}
	}
	return findings
}

// checkDetails denies discoveryDetails that their handler would not understand.
// Details of handlers without a validator are not checked. A validator refuses more than
// maxDetailsBytes without parsing them.
func checkDetails(validators map[string]func(discoveryDetails string) error, configuration *v0.Configuration) []Finding {
	handler := configuration.Spec.DiscoveryHandler
	validate, found := validators[handler.Name]
	if !found {
		return nil
	}
	err := validate(handler.DiscoveryDetails)
	if err == nil {
		return nil
	}
	mistakes := []error{err}
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		mistakes = several.Unwrap()
	}
	var findings []Finding
	for _, mistake := range mistakes {
		findings = append(findings, Finding{Deny, finding.Mistake{Path: "spec.discoveryHandler.discoveryDetails", Cause: mistake.Error()}})
	}
	return findings
}
