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

// contradiction is that an endpoint describes a device otherwise than an endpoint whose
// description counts, in the lists of streams that are open.
type contradiction struct {
	since time.Time // zero if there is none
	shown bool      // it has lasted for failureReportDelay
	told  bool      // it is in the log
	text  string
}

// contradict finds the contradictions of the endpoints, which are sorted. A device that
// changes reaches the endpoints one after the other, so they count when they last.
func (v *view) contradict(endpoints []registry.Endpoint, next *alarm, now time.Time) {
	if len(endpoints) < 2 {
		endpoints = nil
	}
	type description struct {
		Device
		by registry.Endpoint
	}
	known := map[Key]description{}
	for _, s := range v.sources {
		s.contradiction.text = ""
	}
	for _, endpoint := range endpoints {
		s := v.sources[endpoint]
		if !s.open || !s.current {
			continue
		}
		var differing []description
		for _, d := range s.devices {
			first, found := known[d.Key]
			switch {
			case d.Refused != "":
			case !found:
				known[d.Key] = description{d, endpoint}
			case !reflect.DeepEqual(first.Device, d):
				differing = append(differing, first)
			}
		}
		if len(differing) > 0 {
			first := slices.MinFunc(differing, func(a, b description) int { return cmp.Compare(a.ID, b.ID) })
			s.contradiction.text = fmt.Sprintf("devices such as %q have other properties, mounts or files than %s reports, which count: "+
				"let one handler report a device, or both the same", text.Truncate(first.ID, maxShownBytes), first.by)
		}
	}
	for _, s := range v.sources {
		switch c := &s.contradiction; {
		case c.text == "":
			*c = contradiction{}
		case c.since.IsZero():
			c.since = now
			next.due(now.Add(failureReportDelay), now)
		default:
			c.shown = next.due(c.since.Add(failureReportDelay), now)
		}
	}
}

// tell returns the text of a contradiction that lasts, once.
func (c *contradiction) tell() string {
	if !c.shown || c.told {
		return ""
	}
	c.told = true
	return c.text
}
