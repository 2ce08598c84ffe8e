package offline

import (
	"encoding/json"
	"slices"

	"akri.sh/akri/cmd/kubectl-akri/manifest"
	"akri.sh/akri/discovery/builtin"
	"akri.sh/akri/internal/finding"
	"akri.sh/akri/templating/cases"
	"akri.sh/akri/templating/source"
)

// Stored returns what a Configuration that a cluster has stored renders for its Instances,
// by what it is rendered for, as in Instance cam-1; and what lint finds in it. Without
// Instances, it renders for samples.
func Stored(configuration any, instances ...any) (objects map[string][]map[string]any, findings []finding.Finding) {
	const name = "Configuration"
	var all manifest.Files
	for _, object := range append([]any{configuration}, instances...) {
		file := &manifest.File{Name: "Instance"}
		if len(all) == 0 {
			file.Name = name
		}
		if file.Data, file.Err = json.Marshal(object); file.Err == nil {
			file.Documents, file.Err = source.Parse(file.Name, file.Data)
		}
		all = append(all, file)
	}
	inputs, findings := inspect(all, cases.Options{})
	objects = map[string][]map[string]any{}
	for _, in := range inputs {
		rendered, _ := in.Objects()
		for _, object := range rendered {
			objects[object.For] = append(objects[object.For], object.Content)
		}
	}
	findings = slices.DeleteFunc(append(findings, check(all, inputs, builtin.Validators)...), func(f finding.Finding) bool {
		return f.File != name || f.Level == finding.Warning
	})
	return objects, findings
}
