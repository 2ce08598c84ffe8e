package webhook

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/finding"
)

// checkNumber denies a further Configuration in a namespace that has [v0.MaxConfigurations]. Those
// that are being deleted count, because they still take memory. Those that are created at the
// same time may exceed it by as many.
func (c *cluster) checkNumber(ctx context.Context, r admissionRequest) []Finding {
	if r.old != nil {
		return nil
	}
	// The server counts those that it does not send.
	page, err := c.rows(ctx, v0.ConfigurationResource, r.configuration.Namespace, metav1.IncludeNone, metav1.ListOptions{Limit: 1})
	if err != nil {
		return inconclusive("metadata.namespace", fmt.Sprintf("could not count the Configurations of the namespace: %v", err))
	}
	number := int64(len(page.Rows))
	if page.Metadata.RemainingItemCount != nil {
		number += *page.Metadata.RemainingItemCount
	}
	if number < v0.MaxConfigurations {
		return nil
	}
	return []Finding{{Deny, finding.Mistake{
		Path:  "metadata.namespace",
		Cause: fmt.Sprintf("the namespace already has %d Configurations, and the limit is %d", number, v0.MaxConfigurations),
		Hint:  "delete one, or use another namespace",
	}}}
}
