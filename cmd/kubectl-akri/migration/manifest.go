package migration

import (
	"cmp"
	"strings"

	"sigs.k8s.io/yaml"
)

// configurationsIn returns the Configurations of the manifest of a release.
func configurationsIn(manifest, namespace string) []string {
	var names []string
	for document := range strings.SplitSeq("\n"+manifest, "\n---") {
		var object struct {
			APIVersion, Kind string
			Metadata         struct{ Name, Namespace string }
		}
		if yaml.Unmarshal([]byte(document), &object) != nil {
			continue // Helm has parsed it; what matters is found without it
		}
		if object.Kind == "Configuration" && strings.HasPrefix(object.APIVersion, "akri.sh/") {
			names = append(names, cmp.Or(object.Metadata.Namespace, namespace)+"/"+object.Metadata.Name)
		}
	}
	return names
}
