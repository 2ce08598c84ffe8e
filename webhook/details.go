package webhook

import "context"

// detailsCheck has discoveryDetails checked by what their handler says of them.
type detailsCheck map[string]func(discoveryDetails string) error

func (d detailsCheck) look(_ context.Context, r *review) []Finding {
	handler := r.configuration.Spec.DiscoveryHandler
	validate, known := d[handler.Name]
	if !known {
		return nil // somebody else's handler: its own business
	}
	if err := validate(handler.DiscoveryDetails); err != nil {
		return []Finding{{Level: Deny, Place: "spec.discoveryHandler.discoveryDetails", Cause: err.Error()}}
	}
	return nil
}
