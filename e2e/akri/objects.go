package akri

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Objects returns all objects of a cluster as "KIND NAMESPACE/NAME", or "KIND /NAME" if
// they are cluster-scoped. Events, and what Kubernetes itself creates and deletes at any
// time, are left out.
func Objects(ctx context.Context, c Client) (map[string]bool, error) {
	resources, err := c.Kubectl(ctx, "api-resources", "--verbs=list", "--output=name", "--cached=false")
	if err != nil {
		return nil, err
	}
	kinds := slices.DeleteFunc(strings.Fields(string(resources)), func(resource string) bool {
		name, _, _ := strings.Cut(resource, ".")
		switch name {
		case "events", "componentstatuses", "endpoints", "endpointslices", "ipaddresses": // the latter follow Services
			return true
		}
		return false
	})
	text, err := c.Kubectl(ctx, "get", strings.Join(kinds, ","), "--all-namespaces", "--ignore-not-found", "--no-headers",
		"--output=custom-columns=KIND:.kind,NAMESPACE:.metadata.namespace,NAME:.metadata.name")
	if err != nil {
		return nil, fmt.Errorf("list all objects: %w", err)
	}
	objects := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		// Nodes and control planes create their Leases some seconds after they are ready.
		if len(fields) == 3 && (fields[0] != "Lease" || !strings.HasPrefix(fields[1], "kube-")) {
			objects[fields[0]+" "+strings.ReplaceAll(fields[1], "<none>", "")+"/"+fields[2]] = true
		}
	}
	return objects, nil
}
