package webhook

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
)

// checkNumber denies a further Configuration in a namespace that has [v0.MaxConfigurations]. Those
// that are being deleted count, because they still take memory. Those that are created at the
// same time may exceed it by as many.
func checkNumber(ctx context.Context, live client.Reader, r admissionRequest) []Finding {
	if r.old != nil {
		return nil
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(v0.GroupVersion.WithKind("ConfigurationList"))
	// The server counts those that it does not send.
	if err := live.List(ctx, list, client.InNamespace(r.configuration.Namespace), client.Limit(1)); err != nil {
		return []Finding{{
			Level: Inconclusive, Place: "metadata.namespace", Cause: fmt.Sprintf("could not count the Configurations of the namespace: %v", err),
		}}
	}
	number := int64(len(list.Items))
	if list.RemainingItemCount != nil {
		number += *list.RemainingItemCount
	}
	if number < v0.MaxConfigurations {
		return nil
	}
	return []Finding{{
		Level: Deny, Place: "metadata.namespace",
		Cause: fmt.Sprintf("the namespace has %d Configurations already, and the limit is %d", number, v0.MaxConfigurations),
		Hint:  "delete one, or use another namespace",
	}}
}
