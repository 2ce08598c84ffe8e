package webhook

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/finding"
)

// maxNamesPerPage bounds the names of Configurations that are read at a time.
const maxNamesPerPage = 1000

// metadataBytes is what reading the metadata of one object takes: the API server stores
// 1.5 MiB at most, and everybody who may update an object can fill them with managed fields.
const metadataBytes = 4 << 20

// checkName denies a Configuration that has a [v0.CommonResource] with one in another
// namespace: a node's resources for a group of devices and for a device have no
// namespace. Of two Configurations that are created at the same time, both are admitted;
// the agents then serve the older one.
func (c *Chain) checkName(ctx context.Context, r admissionRequest) []Finding {
	if r.old != nil {
		return nil // a name never changes
	}
	rival, err := c.findRival(ctx, r)
	switch {
	case errors.Is(err, errBusy):
		return []Finding{tooBusy(err)}
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
func (c *Chain) findRival(ctx context.Context, r admissionRequest) (string, error) {
	names := []string{r.configuration.Name}
	if parent, ok := v0.ParseInstanceName(r.configuration.Name); ok {
		names = append(names, parent)
	}
	if taken, err := c.firstTaken(ctx, r, names); taken != "" || err != nil {
		return taken, err
	}
	names, err := c.namedLikeInstances(ctx, r.configuration, maxNamesPerPage)
	if err != nil {
		return "", err
	}
	return c.firstTaken(ctx, r, names)
}

// firstTaken returns the first of the names that a Configuration in another namespace
// has, or "".
func (c *Chain) firstTaken(ctx context.Context, r admissionRequest, names []string) (string, error) {
	for _, name := range names {
		taken, err := c.taken(ctx, r, name)
		if err != nil {
			return "", err
		}
		if taken {
			return name, nil
		}
	}
	return "", nil
}

// taken reports whether a Configuration in another namespace that is not being deleted has a
// name. It reads their metadata one by one.
func (c *Chain) taken(ctx context.Context, r admissionRequest, name string) (bool, error) {
	release, err := c.reserve(ctx, r, metadataBytes)
	if err != nil {
		return false, err
	}
	defer release()
	others := metav1.ListOptions{Limit: 1, FieldSelector: "metadata.name=" + name + ",metadata.namespace!=" + r.configuration.Namespace}
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

// namedLikeInstances returns the names of Configurations in other namespaces that an
// Instance of a Configuration may have. No field selector finds them, so it reads the
// names of all.
func (c *cluster) namedLikeInstances(ctx context.Context, configuration *v0.Configuration, perPage int64) ([]string, error) {
	var names []string
	others := metav1.ListOptions{Limit: perPage, FieldSelector: "metadata.namespace!=" + configuration.Namespace}
	for {
		page, err := c.rows(ctx, v0.ConfigurationResource, "", metav1.IncludeNone, others)
		if err != nil {
			return nil, err
		}
		for _, name := range page.names() {
			if parent, ok := v0.ParseInstanceName(name); ok && parent == configuration.Name {
				names = append(names, name)
			}
		}
		if others.Continue = page.Metadata.Continue; others.Continue == "" {
			return names, nil
		}
	}
}
