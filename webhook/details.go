package webhook

import v0 "akri.sh/akri/api/v0"

// checkDetails denies discoveryDetails that their handler would not understand.
// Details of handlers without a validator are not checked.
func checkDetails(validators map[string]func(discoveryDetails string) error, configuration *v0.Configuration) []Finding {
	handler := configuration.Spec.DiscoveryHandler
	validate, found := validators[handler.Name]
	if !found {
		return nil
	}
	if err := validate(handler.DiscoveryDetails); err != nil {
		return []Finding{{Level: Deny, Place: "spec.discoveryHandler.discoveryDetails", Cause: err.Error()}}
	}
	return nil
}
