package offline

import (
	"strings"

	"akri.sh/akri/discovery/details"
	"akri.sh/akri/internal/finding"
	"akri.sh/akri/templating"
	"akri.sh/akri/templating/source"
)

// checkDetails finds the mistakes in discoveryDetails that their handler would refuse.
func checkDetails(c *source.Document, validators map[string]func(string) error) []finding.Finding {
	spec, _ := c.Object()["spec"].(map[string]any)
	handler, _ := spec["discoveryHandler"].(map[string]any)
	name, _ := handler["name"].(string)
	text, isText := handler["discoveryDetails"].(string)
	validate, known := validators[name]
	if !known || !isText && handler["discoveryDetails"] != nil { // the schema's check reports a wrong type
		return nil
	}
	var findings []finding.Finding
	for _, fault := range details.Faults(validate(text)) {
		found := finding.Finding{Mistake: fault.Mistake}
		found.Path = strings.TrimSuffix("spec.discoveryHandler.discoveryDetails: "+fault.Path, ": ")
		var pos templating.Pos
		pos.Line, pos.Column = fault.Position(text)
		found.Position = c.Locate(templating.Keys("spec", "discoveryHandler", "discoveryDetails"), templating.Diagnostic{Pos: pos})
		findings = append(findings, found)
	}
	return findings
}
