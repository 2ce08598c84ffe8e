package webhook

import (
	"k8s.io/apimachinery/pkg/runtime"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/templating/convert"
)

// checkDoubts warns of what in the old fields works other than it looks.
func checkDoubts(configuration *v0.Configuration) []Finding {
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&configuration.Spec)
	if err != nil {
		return nil // the API server has decoded it
	}
	var findings []Finding
	for _, d := range convert.Doubts(spec, configuration.Name) {
		findings = append(findings, Finding{Warn, d.In("spec").Mistake})
	}
	return findings
}
