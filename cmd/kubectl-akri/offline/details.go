package offline

import (
	"errors"

	"akri.sh/akri/discovery/details"
	"akri.sh/akri/internal/finding"
	"akri.sh/akri/templating"
	"akri.sh/akri/templating/source"
)

// checkDetails finds the mistake in discoveryDetails that their handler would refuse.
func checkDetails(c *source.Document, validators map[string]func(string) error) []finding.Finding {
	spec, _ := c.Object()["spec"].(map[string]any)
	handler, _ := spec["discoveryHandler"].(map[string]any)
	name, _ := handler["name"].(string)
	text, isText := handler["discoveryDetails"].(string)
	validate, known := validators[name]
	if !known || !isText && handler["discoveryDetails"] != nil { // the schema's check reports a wrong type
		return nil
	}
	err := validate(text)
	if err == nil {
		return nil
	}
	found := finding.Finding{Mistake: finding.Mistake{Path: "spec.discoveryHandler.discoveryDetails", Cause: err.Error()}}
	var pos templating.Pos
	if fault, ok := errors.AsType[*details.Fault](err); ok {
		found.Cause, found.Hint = fault.Cause, fault.Hint
		if fault.Path != "" {
			found.Path += ": " + fault.Path
		}
		pos.Line, pos.Column = fault.Position(text)
	}
	found.Position = c.Locate(pathOf("spec", "discoveryHandler", "discoveryDetails"), templating.Diagnostic{Pos: pos})
	return []finding.Finding{found}
}
