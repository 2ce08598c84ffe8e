package webhook

import (
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/finding"
	"akri.sh/akri/templating"
)

// checkVolumes warns of PersistentVolumeClaims that are deleted with the devices, and
// their data with them, unless the template says what to do.
func checkVolumes(candidates []*candidate) []Finding {
	var findings []Finding
	for _, tmpl := range candidates {
		metadata, _ := tmpl.source["metadata"].(map[string]any)
		annotations, _ := metadata["annotations"].(map[string]any)
		_, decided := annotations[v0.Domain+"/deletion-policy"]
		if decided || tmpl.kind.Group != "" || tmpl.kind.Kind != "PersistentVolumeClaim" {
			continue
		}
		when := "its device disappears"
		if tmpl.level == templating.ConfigurationLevel {
			when = "the last device disappears, even for a moment"
		}
		findings = append(findings, Finding{Warn, finding.Mistake{
			Path:  tmpl.place,
			Cause: "the PersistentVolumeClaim is deleted when " + when + ", and its data with it",
			Hint:  "annotate it " + v0.Domain + "/deletion-policy: orphan to keep it, or delete if that is intended",
		}})
	}
	return findings
}
