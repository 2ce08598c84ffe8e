package webhook

import (
	"fmt"

	v0 "akri.sh/akri/api/v0"
)

// checkReferences warns of discoveryProperties from other namespaces, which agents do
// not read by default. Whether they do is a flag of the agents, which the webhook does
// not know.
func checkReferences(configuration *v0.Configuration) []Finding {
	var findings []Finding
	for i, property := range configuration.Spec.DiscoveryHandler.DiscoveryProperties {
		if property.ValueFrom == nil {
			continue
		}
		for field, key := range map[string]*v0.KeyReference{
			"secretKeyRef": property.ValueFrom.SecretKeyRef, "configMapKeyRef": property.ValueFrom.ConfigMapKeyRef,
		} {
			if key == nil || key.Namespace == "" || key.Namespace == configuration.Namespace {
				continue
			}
			findings = append(findings, Finding{
				Level: Warn, Place: fmt.Sprintf("spec.discoveryHandler.discoveryProperties[%d].valueFrom.%s.namespace", i, field),
				Cause: "agents read " + key.Namespace + " only if they run with --allow-cross-namespace-properties; otherwise there are no devices",
				Hint:  "copy the object to namespace " + configuration.Namespace + " unless your agents do",
			})
		}
	}
	return findings
}
