package nodes

import (
	"slices"
	"strconv"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/jsonpatch"
)

// failingNodes returns the nodes on which discovery fails for a Configuration, sorted.
func failingNodes(configuration *v0.Configuration) []string {
	var nodes []string
	for _, failure := range configuration.Status.DiscoveryFailures {
		nodes = append(nodes, failure.Node)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// failureRemoval returns the patch that removes a node's failures from the status of a
// Configuration, if they are still where they were read. The rest of the status may
// change meanwhile: many agents write it. The API server removes the field manager of
// the node's agent together with the last field that it owns.
func failureRemoval(configuration *v0.Configuration, node string) jsonpatch.Patch {
	patch := jsonpatch.Patch{jsonpatch.Test("/metadata/uid", configuration.UID)}
	for i, failure := range slices.Backward(configuration.Status.DiscoveryFailures) {
		if failure.Node == node {
			path := jsonpatch.Pointer("status", "discoveryFailures", strconv.Itoa(i))
			patch = append(patch, jsonpatch.Test(path, failure), jsonpatch.Remove(path))
		}
	}
	return patch
}
