package offline

import (
	"errors"

	"akri.sh/akri/cmd/kubectl-akri/manifest"
	"akri.sh/akri/discovery/details"
	"akri.sh/akri/templating"
	"akri.sh/akri/templating/source"
)

// checkDetails finds the mistake in discoveryDetails that their handler would refuse.
func checkDetails(c *source.Document, validators map[string]func(string) error) []manifest.Finding {
	spec, _ := c.Object()["spec"].(map[string]any)
	handler, _ := spec["discoveryHandler"].(map[string]any)
	name, _ := handler["name"].(string)
	text, isText := handler["discoveryDetails"].(string)
	validate, found := validators[name]
	if !found || !isText && handler["discoveryDetails"] != nil { // the schema's check reports a wrong type
		return nil
	}
	err := validate(text)
	if err == nil {
		return nil
	}
	finding := manifest.Finding{Place: "spec.discoveryHandler.discoveryDetails", Cause: err.Error()}
	var pos templating.Pos
	if fault, ok := errors.AsType[*details.Fault](err); ok {
		finding.Cause, finding.Hint = fault.Cause, fault.Remedy
		if fault.Path != "" {
			finding.Place += ": " + fault.Path
		}
		pos.Line, pos.Column = fault.Position(text)
	}
	finding.At = c.Locate(pathOf("spec", "discoveryHandler", "discoveryDetails"), templating.Diagnostic{Pos: pos})
	return []manifest.Finding{finding}
}
