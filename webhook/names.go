package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
)

// maxNamesPerPage bounds the names of Configurations that are read at a time.
const maxNamesPerPage = 1000

// checkName denies a Configuration that has a [v0.CommonResource] with one in another
// namespace: a node's resources for a group of devices and for a device have no
// namespace. Of two Configurations that are created at the same time, both are admitted;
// the agents then serve the older one.
func (c *Chain) checkName(ctx context.Context, r admissionRequest) []Finding {
	if r.old != nil {
		return nil // a name never changes
	}
	rival, err := c.findRival(ctx, r.configuration)
	switch {
	case err != nil:
		return []Finding{{
			Level: Inconclusive, Place: "metadata.name",
			Cause: fmt.Sprintf("could not check whether another namespace uses this name: %v", err),
		}}
	case rival != "":
		// The message does not name the namespace: the requester may not be allowed to
		// see it.
		return []Finding{{
			Level: Deny, Place: "metadata.name",
			Cause: fmt.Sprintf("another namespace has a Configuration %q, and nodes would offer the devices of both as %s",
				rival, v0.CommonResource(rival, r.configuration.Name)),
			Hint: "choose another name",
		}}
	}
	return nil
}

// findRival returns the name of a Configuration in another namespace that has a common
// resource with a Configuration, or "".
func (c *Chain) findRival(ctx context.Context, configuration *v0.Configuration) (string, error) {
	names := []string{configuration.Name}
	if parent, ok := v0.ParseInstanceName(configuration.Name); ok {
		names = append(names, parent)
	}
	if taken, err := c.firstTaken(ctx, configuration.Namespace, names); taken != "" || err != nil {
		return taken, err
	}
	names, err := c.namedLikeInstances(ctx, configuration, maxNamesPerPage)
	if err != nil {
		return "", err
	}
	return c.firstTaken(ctx, configuration.Namespace, names)
}

// firstTaken returns the first of the names that a Configuration in another namespace
// has, or "".
func (c *Chain) firstTaken(ctx context.Context, namespace string, names []string) (string, error) {
	for _, name := range names {
		list := &metav1.PartialObjectMetadataList{} // not the templates
		list.SetGroupVersionKind(v0.GroupVersion.WithKind("ConfigurationList"))
		if err := c.live.List(ctx, list, client.MatchingFields{"metadata.name": name}); err != nil {
			return "", err
		}
		if slices.ContainsFunc(list.Items, func(other metav1.PartialObjectMetadata) bool {
			return other.Namespace != namespace && v0.Active(&v0.Configuration{ObjectMeta: other.ObjectMeta})
		}) {
			return name, nil
		}
	}
	return "", nil
}

// namedLikeInstances returns the names of Configurations in other namespaces that an
// Instance of a Configuration may have. No field selector finds them, so it reads the
// names of all, as rows of a table: metadata would have annotations and managed fields,
// which are as large as a tenant wants them.
func (c *Chain) namedLikeInstances(ctx context.Context, configuration *v0.Configuration, perPage int) ([]string, error) {
	var names []string
	for next := ""; ; {
		answer, err := c.api.Get().
			AbsPath("apis", v0.GroupVersion.Group, v0.GroupVersion.Version, v0.ConfigurationResource.Resource).
			SetHeader("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1").
			Param("includeObject", string(metav1.IncludeNone)).
			Param("fieldSelector", "metadata.namespace!="+configuration.Namespace).
			Param("limit", strconv.Itoa(perPage)).
			Param("continue", next).
			DoRaw(ctx)
		if err != nil {
			return nil, fmt.Errorf("list the names of Configurations: %w", err)
		}
		var page metav1.Table
		if err := json.Unmarshal(answer, &page); err != nil {
			return nil, fmt.Errorf("list the names of Configurations: %w", err)
		}
		for _, row := range page.Rows {
			name, _ := row.Cells[0].(string) // the first column of every kind
			if parent, ok := v0.ParseInstanceName(name); ok && parent == configuration.Name {
				names = append(names, name)
			}
		}
		if next = page.Continue; next == "" {
			return names, nil
		}
	}
}
