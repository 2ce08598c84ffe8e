package webhook

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/templating"
)

// evaluate returns the alternatives of a template, and the findings about it.
func (s *simulation) evaluate(tmpl *candidate) (alternatives []outline, findings []Finding) {
	var failure templating.Diagnostics
	collisions, successes := 0, 0
	var collision string
	for _, round := range s.rounds {
		rendered := round.first
		if tmpl.level == templating.ConfigurationLevel {
			rendered = round.group
		}
		if diagnostics := rendered.diagnostics.Of(tmpl.level, tmpl.index); len(diagnostics) > 0 {
			if failure == nil {
				failure = diagnostics
			}
			continue
		}
		successes++
		objects := rendered.objectsOf(tmpl)
		if message, found := round.collision(tmpl, objects); found {
			collisions, collision = collisions+1, message
		}
		if len(objects) == 0 && tmpl.level == templating.InstanceLevel {
			// The template's condition requires another device.
			objects = append(round.shared.objectsOf(tmpl), round.second.objectsOf(tmpl)...)
		}
		alternatives = append(alternatives, objects[:min(1, len(objects))]...)
	}
	switch {
	case successes == 0:
		return alternatives, s.failed(tmpl, failure)
	case s.incomplete:
		return alternatives, nil // there is nothing to compare with
	case collisions == successes:
		return alternatives, []Finding{{
			Level: Deny, Place: tmpl.field("metadata.name"), Cause: collision, Hint: "use different names",
		}}
	case s.unstable(tmpl):
		return alternatives, []Finding{{
			Level: Deny, Place: tmpl.place,
			Cause: "two renderings for the same device give different objects",
			Hint:  "please report this as a bug",
		}}
	}
	return alternatives, nil
}

// failed returns the findings for a template that fails for every guess.
func (s *simulation) failed(tmpl *candidate, diagnostics templating.Diagnostics) []Finding {
	var findings []Finding
	for i, found := range s.compiled.Diagnosed(v0.ReasonRenderFailed, diagnostics) {
		finding := denial(found)
		_, exceeded := errors.AsType[*templating.LimitError](diagnostics[i].Cause)
		if s.devices.guesses(tmpl.source) && !exceeded {
			finding.Hint = strings.TrimPrefix(finding.Hint+"; "+sampleHint, "; ")
		}
		findings = append(findings, finding)
	}
	return findings
}

// collision reports whether another device, or a template of the other list, would
// also own one of a template's objects. (Two templates of the same list fail to
// render.)
func (r guessRound) collision(tmpl *candidate, objects []outline) (message string, found bool) {
	others := r.second.objectsOf(tmpl)
	if tmpl.level == templating.ConfigurationLevel {
		others = r.first.objects
	}
	for _, object := range objects {
		if object.onConflict == templating.ConflictSkip {
			continue // the author wants to share it
		}
		for _, other := range others {
			if object.identity != other.identity {
				continue
			}
			name := object.identity.name
			if tmpl.level == templating.ConfigurationLevel {
				return fmt.Sprintf("%q is also the name of an object of %s", name, other.origin), true
			}
			return fmt.Sprintf("two devices on one node get the same name %q, and thus the same object: build it from INSTANCE_NAME", name), true
		}
	}
	return "", false
}

// unstable reports whether the second rendering for the same device differs from
// the first.
func (s *simulation) unstable(tmpl *candidate) bool {
	first, second := s.rounds[0].first, s.repeated.first
	if tmpl.level == templating.ConfigurationLevel {
		first, second = s.rounds[0].group, s.repeated.group
	}
	return !slices.EqualFunc(first.objectsOf(tmpl), second.objectsOf(tmpl), func(a, b outline) bool {
		return a.digest == b.digest
	})
}
