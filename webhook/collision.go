package webhook

import (
	"fmt"

	"akri.sh/akri/templating"
)

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
			hidden := private && tmpl.namedByDevice()
			switch name := object.ref.Name; {
			case tmpl.level == templating.ConfigurationLevel && hidden:
				return fmt.Sprintf("what a device gives is also the name of an object of %s", other.Origin), true
			case tmpl.level == templating.ConfigurationLevel:
				return fmt.Sprintf("%q is also the name of an object of %s", name, other.Origin), true
			case hidden:
				return "two devices on one node get the same name, and thus the same object: build it from INSTANCE_NAME", true
			default:
				return fmt.Sprintf("two devices on one node get the same name %q, and thus the same object: build it from INSTANCE_NAME", name), true
			}
		}
	}
	return "", false
}
