package streams

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"time"

	"akri.sh/akri/agent/discover/registry"
	"akri.sh/akri/internal/text"
)

// contradictions returns the failures of the endpoints, which are sorted, that describe a
// device otherwise than the first one that has it, whose description counts. A device that
// changes reaches the endpoints one after the other, so they count when they last.
func (v *view) contradictions(endpoints []registry.Endpoint, next *alarm, now time.Time) (failures []Failure) {
	type description struct {
		Device
		by registry.Endpoint
	}
	known := map[Key]description{}
	for _, endpoint := range endpoints {
		s := v.sources[endpoint]
		var differing []description
		for _, d := range s.devices {
			first, found := known[d.Key]
			switch {
			case d.Refused != "" || !s.open || !s.current:
			case !found:
				known[d.Key] = description{d, endpoint}
			case !reflect.DeepEqual(first.Device, d):
				differing = append(differing, first)
			}
		}
		switch {
		case len(differing) == 0:
			s.differsSince = time.Time{}
			continue
		case s.differsSince.IsZero():
			s.differsSince = now
		}
		if next.due(s.differsSince.Add(failureReportDelay), now) {
			first := slices.MinFunc(differing, func(a, b description) int { return cmp.Compare(a.ID, b.ID) })
			failures = append(failures, Failure{endpoint, fmt.Sprintf("devices such as %q have other properties, mounts or files than "+
				"%s reports, which count: let one handler report a device, or both the same", text.Truncate(first.ID, maxShownBytes), first.by)})
		}
	}
	return failures
}
