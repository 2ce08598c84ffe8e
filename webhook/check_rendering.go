package webhook

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/finding"
	"akri.sh/akri/templating"
)

// choose returns the object of a template that is tried, nil if there is none, or what is wrong
// with the template's objects.
func (o *objectReview) choose(all round, tmpl *candidate) (*rendered, []Finding) {
	objects, diagnostics := all.of(tmpl)
	if len(diagnostics) > 0 {
		return nil, o.failed(tmpl, diagnostics)
	}
	if message, found := all.collision(tmpl, objects, o.devices.observed); found {
		return nil, []Finding{{Deny, finding.Mistake{Path: tmpl.field("metadata.name"), Cause: message, Hint: "use different names"}}}
	}
	if len(objects) == 0 && tmpl.level == templating.InstanceLevel {
		// The template's condition requires another device.
		objects = append(all.shared.objectsOf(tmpl), all.second.objectsOf(tmpl)...)
	}
	if len(objects) == 0 {
		return nil, nil
	}
	return &objects[0], nil
}

// failed returns the findings for a template that fails.
func (o *objectReview) failed(tmpl *candidate, diagnostics templating.Diagnostics) []Finding {
	var findings []Finding
	for i, err := range o.compiled.Diagnosed(v0.ReasonRenderFailed, diagnostics) {
		found := denial(err)
		if o.devices.guesses(tmpl.source) && !errors.Is(diagnostics[i], templating.ErrLimit) {
			found.Hint = strings.TrimPrefix(found.Hint+"; "+sampleHint, "; ")
		}
		findings = append(findings, found)
	}
	return findings
}

// tooSlow returns the findings if there was no time to render the templates with the first guess.
func (o *objectReview) tooSlow(first round) []Finding {
	var findings []Finding
	for _, tmpl := range o.candidates {
		findings = append(findings, o.failed(tmpl, first.first.diagnostics.Of(tmpl.level, tmpl.index))...)
	}
	if len(findings) == 0 {
		findings = []Finding{{Deny, finding.Mistake{
			Path: "spec", Cause: "the templates take too long to render, even for one device", Hint: "use fewer or shorter loops",
		}}}
	}
	return findings
}

// collision reports whether another device, or a template of the other list, would
// also own one of a template's objects. (Two templates of the same list fail to
// render.) private is set if names may have properties of an existing device.
func (r round) collision(tmpl *candidate, objects []rendered, private bool) (message string, found bool) {
	others := r.second.objectsOf(tmpl)
	if tmpl.level == templating.ConfigurationLevel {
		others = r.first.objects
	}
	for _, object := range objects {
		if object.Directives.OnConflict == templating.ConflictSkip {
			continue // the author wants to share it
		}
		for _, other := range others {
			if object.ref != other.ref {
				continue
			}
			name := strconv.Quote(object.ref.Name)
			same := "the same name " + name
			if private && tmpl.namedByDevice() {
				name, same = "what a device gives", "the same name"
			}
			if tmpl.level == templating.ConfigurationLevel {
				return fmt.Sprintf("%s is also the name of an object of %s", name, other.Origin), true
			}
			return "two devices on one node get " + same + ", and thus the same object: build it from INSTANCE_NAME", true
		}
	}
	return "", false
}
