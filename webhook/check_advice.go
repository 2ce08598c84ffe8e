package webhook

import (
	"akri.sh/akri/controller/advice"
	"akri.sh/akri/templating"
)

// The warnings about services, selectors, Akri's old fields, init containers, devices, updates,
// slots, Jobs and volumes are in the package advice, because kubectl akri lint gives them, too.

// advise adds warnings about objects that will not work as expected, alone or together.
func (o *objectReview) advise(warnings templating.Diagnostics) {
	for _, warning := range warnings {
		mistake := warning.In("").Mistake
		mistake.Path = candidateOf(o.candidates, warning.Origin.Level, warning.Origin.Index).field(mistake.Path)
		if !o.advised[mistake.Path] {
			o.advised[mistake.Path] = true
			o.warnings = append(o.warnings, Finding{Warn, mistake})
		}
	}
}

// together returns the warnings about what the objects of a round do to each other. If some are
// missing, they might select others or be selected.
func (r round) together() templating.Diagnostics {
	var members []advice.Member
	for _, list := range []output{r.first, r.second, r.shared, r.group} {
		if len(list.diagnostics) > 0 {
			return nil
		}
		for _, object := range list.objects {
			if !object.held() {
				return nil
			}
			members = append(members, object.Member)
		}
	}
	return advice.Together(members)
}
