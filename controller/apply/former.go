package apply

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/ownership"
)

// LabelOfAkri is the label, with [v0.Domain] as its value, that the original Akri sets on
// the brokers of brokerSpec, and that their conversion to templates keeps.
const LabelOfAkri = "controller"

// FormerJob returns the UID of a Job that the original Akri has created for an Instance,
// or "" if there is none. The Job's name has the Configuration's generation at that time,
// so it is found by its labels and its owner.
func (c *Client) FormerJob(ctx context.Context, jobs schema.GroupVersionResource, instance ownership.Parent) (types.UID, error) {
	selector := v0.LabelInstance + "=" + instance.Name + "," + LabelOfAkri + "=" + v0.Domain + "," + v0.LabelManagedBy + "!=" + v0.ManagedBy
	var found types.UID
	_, err := c.api.List(ctx, jobs, instance.Namespace, selector, func(job *unstructured.Unstructured) bool {
		if owner := metav1.GetControllerOf(job); owner != nil && owner.UID == instance.UID && job.GetDeletionTimestamp() == nil {
			found = job.GetUID()
		}
		return found == ""
	})
	if err != nil {
		return "", fmt.Errorf("look for a Job that Akri has created for %s: %w", instance, err)
	}
	return found, nil
}
