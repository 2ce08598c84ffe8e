package webhook

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
)

// checkName denies a second Configuration of the same name: a node's resource for a
// group of devices has the name of the Configuration, without the namespace. Two
// Configurations that are created at the same time are both admitted; the agents
// then serve the older one.
func checkName(ctx context.Context, live client.Reader, r admissionRequest) []Finding {
	if r.old != nil {
		return nil // a name never changes
	}
	list := &metav1.PartialObjectMetadataList{} // not the templates
	list.SetGroupVersionKind(v0.GroupVersion.WithKind("ConfigurationList"))
	if err := live.List(ctx, list, client.MatchingFields{"metadata.name": r.configuration.Name}); err != nil {
		return []Finding{{
			Level: Inconclusive, Place: "metadata.name",
			Cause: fmt.Sprintf("could not check whether another namespace has a Configuration of this name: %v", err),
		}}
	}
	for i := range list.Items {
		other := &v0.Configuration{ObjectMeta: list.Items[i].ObjectMeta}
		if other.Namespace != r.configuration.Namespace && v0.Active(other) {
			// The message does not name the namespace: the requester may not be
			// allowed to see it.
			return []Finding{{
				Level: Deny, Place: "metadata.name",
				Cause: fmt.Sprintf("another namespace has a Configuration %q, and nodes would offer the devices of both as %s",
					r.configuration.Name, v0.ResourceName(r.configuration.Name)),
				Hint: "choose another name",
			}}
		}
	}
	return nil
}
