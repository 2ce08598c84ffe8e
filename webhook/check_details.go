package webhook

import (
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/finding"
)

// checkDetails denies discoveryDetails that their handler would not understand.
// Details of handlers without a validator are not checked. A validator refuses more than
// its limit without parsing them.
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
