package webhook

import (
	"context"

	"akri.sh/akri/discovery"
)

// details has discoveryDetails checked by the handler that they are for.
type details map[string]discovery.Validator

func (d details) look(_ context.Context, r *review) []Finding {
	handler := r.configuration.Spec.DiscoveryHandler
	validator, known := d[handler.Name]
	if !known {
		return nil // somebody else's handler: its own business
	}
	if err := validator.ValidateDetails(handler.DiscoveryDetails); err != nil {
		return []Finding{{Level: Deny, Place: "spec.discoveryHandler.discoveryDetails", Cause: err.Error()}}
	}
	return nil
}
