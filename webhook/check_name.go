package webhook

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/finding"
)

// maxNamesPerPage bounds the names of Configurations that are read at a time.
const maxNamesPerPage = 1000

// checkName denies a Configuration that has a [v0.CommonResource] with one in another
// namespace: a node's resources for a group of devices and for a device have no
// namespace. Of two Configurations that are created at the same time, both are admitted;
// the agents then serve the older one.
func (c *cluster) checkName(ctx context.Context, r admissionRequest) []Finding {
	if r.old != nil {
		return nil // a name never changes
	}
	rival, err := c.findRival(ctx, r.configuration)
	switch {
	case err != nil:
		return inconclusive("metadata.name", fmt.Sprintf("could not check whether another namespace uses this name: %v", err))
	case rival != "":
		// The message does not name the namespace: the requester may not be allowed to
		// see it.
		return []Finding{{Deny, finding.Mistake{
			Path: "metadata.name",
			Cause: fmt.Sprintf("another namespace has a Configuration %q, and nodes would offer the devices of both as %s",
				rival, v0.CommonResource(rival, r.configuration.Name)),
			Hint: "choose another name",
		}}}
	}
	return nil
}

// findRival returns the name of a Configuration in another namespace that has a common
// resource with that of a request, or "".
func (c *cluster) findRival(ctx context.Context, configuration *v0.Configuration) (string, error) {
	names, err := c.rivalNames(ctx, configuration, maxNamesPerPage)
	for _, name := range names {
		if taken, err := c.taken(ctx, configuration, name); taken || err != nil {
			return name, err
		}
	}
	return "", err
}

// taken reports whether a Configuration in another namespace that is not being deleted has a
// name. It reads their metadata one by one.
func (c *cluster) taken(ctx context.Context, configuration *v0.Configuration, name string) (bool, error) {
	others := metav1.ListOptions{Limit: 1, FieldSelector: "metadata.name=" + name + ",metadata.namespace!=" + configuration.Namespace}
	for {
		page, err := c.rows(ctx, v0.ConfigurationResource, "", metav1.IncludeMetadata, others)
		if err != nil {
			return false, err
		}
		for _, row := range page.Rows {
			if v0.Active(&v0.Configuration{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: row.Object.Metadata.DeletionTimestamp}}) {
				return true, nil
			}
		}
		if others.Continue = page.Metadata.Continue; others.Continue == "" {
			return false, nil
		}
	}
}

// rivalNames returns the names of Configurations in other namespaces that have a common
// resource with a Configuration: its own name, and those of Instances and of what they are
// Instances of. No field selector finds all of them, so it reads the names of all.
func (c *cluster) rivalNames(ctx context.Context, configuration *v0.Configuration, perPage int64) ([]string, error) {
	var names []string
	others := metav1.ListOptions{Limit: perPage, FieldSelector: "metadata.namespace!=" + configuration.Namespace}
	for {
		page, err := c.rows(ctx, v0.ConfigurationResource, "", metav1.IncludeNone, others)
		if err != nil {
			return nil, err
		}
		for _, name := range page.names() {
			if v0.CommonResource(name, configuration.Name) != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		if others.Continue = page.Metadata.Continue; others.Continue == "" {
			return names, nil
		}
	}
}
