package webhook

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
)

// names refuses a second Configuration of a name: nodes know a group of devices
// by the Configuration's name alone, without its namespace. Two that are made in
// the same moment pass; the agents then serve the older one.
type names struct {
	live client.Reader
}

func (n names) look(ctx context.Context, r *review) []Finding {
	if r.old != nil {
		return nil // a name never changes
	}
	var list v0.ConfigurationList
	if err := n.live.List(ctx, &list, client.MatchingFields{"metadata.name": r.configuration.Name}); err != nil {
		return []Finding{{Level: Inconclusive, Place: "metadata.name", Cause: fmt.Sprintf("other Configurations of this name cannot be looked for: %v", err)}}
	}
	for i := range list.Items {
		if other := &list.Items[i]; other.Namespace != r.configuration.Namespace && other.DeletionTimestamp == nil {
			// The namespace is not told: the requester may not be able to see it.
			return []Finding{{
				Level: Deny, Place: "metadata.name",
				Cause:  fmt.Sprintf("another namespace has a Configuration %q, and nodes would offer the devices of both as %s", r.configuration.Name, v0.ResourceName(r.configuration.Name)),
				Remedy: "choose another name",
			}}
		}
	}
	return nil
}
