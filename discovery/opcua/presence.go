package opcua

import (
	"maps"
	"slices"
	"strings"
)

// maxRemembered bounds the applications of all targets of a request, and the names and the
// descriptions that are remembered for them.
const maxRemembered = 10000

// presence remembers the applications that targets have reported. One that is missing
// from an answer, or whose target does not answer, is kept until it has been missing
// misses times in a row. It is not safe for concurrent use.
type presence struct {
	misses  int
	targets map[string]*targetReport
}

// targetReport is what a target has reported.
type targetReport struct {
	order        int // of the target in discoveryDetails
	failures     int // in a row
	applications map[string]*rememberedReport
	bytes        int // the memory of the applications
}

type rememberedReport struct {
	application
	missed int
}

func newPresence(misses int) *presence {
	return &presence{misses: misses, targets: map[string]*targetReport{}}
}

// answered records an answer of a target. Nothing is missing from a partial one, and
// applications whose look-ups are unfinished are added when they are finished.
func (p *presence) answered(target string, order int, latest targetAnswer) {
	r := p.target(target, order)
	r.failures = 0
	for _, remembered := range r.applications {
		if !latest.isPartial {
			remembered.missed++
		}
	}
	free := maxRemembered - p.count()
	for _, each := range latest.found {
		former := r.applications[each.url]
		if each.isUnfinished {
			if former != nil {
				former.missed = 0
			}
			continue // and what was known stays valid
		}
		if former == nil {
			if free <= 0 {
				continue
			}
			free--
		}
		r.applications[each.url] = &rememberedReport{application: each}
	}
	p.forget(r)
}

// failed records that a target did not answer.
func (p *presence) failed(target string, order int) {
	r := p.target(target, order)
	r.failures++
	for _, remembered := range r.applications {
		remembered.missed++
	}
	p.forget(r)
}

// silent reports whether a target has not answered for so long that its applications are
// gone.
func (p *presence) silent(target string) bool {
	r := p.targets[target]
	return r != nil && r.failures >= p.misses
}

// drop forgets a target.
func (p *presence) drop(target string) { delete(p.targets, target) }

// current returns the applications, those of the first target first, and ordered by URL
// within a target, so that the result does not depend on the order of answers.
func (p *presence) current() []application {
	var all []application
	for _, target := range slices.Sorted(maps.Keys(p.targets)) {
		r := p.targets[target]
		for _, url := range slices.Sorted(maps.Keys(r.applications)) {
			each := r.applications[url].application
			each.order = r.order
			all = append(all, each)
		}
	}
	slices.SortStableFunc(all, func(a, b application) int {
		if a.order != b.order {
			return a.order - b.order
		}
		return strings.Compare(a.url, b.url)
	})
	return all
}

// count returns the number of remembered applications.
func (p *presence) count() int {
	count := 0
	for _, r := range p.targets {
		count += len(r.applications)
	}
	return count
}

func (p *presence) target(target string, order int) *targetReport {
	r := p.targets[target]
	if r == nil {
		r = &targetReport{applications: map[string]*rememberedReport{}}
		p.targets[target] = r
	}
	r.order = order
	return r
}

func (p *presence) forget(r *targetReport) {
	maps.DeleteFunc(r.applications, func(_ string, each *rememberedReport) bool { return each.missed >= p.misses })
	r.bytes = 0
	for _, each := range r.applications {
		r.bytes += each.size()
	}
}

// bytes returns the memory of all applications.
func (p *presence) bytes() int {
	bytes := 0
	for _, r := range p.targets {
		bytes += r.bytes
	}
	return bytes
}
