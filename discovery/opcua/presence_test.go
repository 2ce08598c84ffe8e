package opcua

import (
	"fmt"
	"strings"
	"testing"
)

func urlsOf(applications []application) string {
	var urls []string
	for _, a := range applications {
		urls = append(urls, a.url)
	}
	return strings.Join(urls, " ")
}

func TestPresence(t *testing.T) {
	p := newPresence(3)
	a, b := application{url: "a"}, application{url: "b"}
	steps := []struct {
		reason string
		do     func()
		want   string
	}{
		{"both are reported", func() { p.answered("lds", 0, targetAnswer{found: []application{b, a}}) }, "a b"},
		{"a lost answer removes nothing", func() { p.failed("lds", 0) }, "a b"},
		{"an answer without b is the second miss of b", func() { p.answered("lds", 0, targetAnswer{found: []application{a}}) }, "a b"},
		{"the third miss in a row removes b", func() { p.answered("lds", 0, targetAnswer{found: []application{a}}) }, "a"},
		{"a was reported last time", func() { p.failed("lds", 0); p.failed("lds", 0) }, "a"},
		{"an answer resets the misses", func() { p.answered("lds", 0, targetAnswer{found: []application{a, b}}) }, "a b"},
		{"not gone yet", func() { p.failed("lds", 0); p.failed("lds", 0) }, "a b"},
		{"gone", func() { p.failed("lds", 0) }, ""},
	}
	for _, step := range steps {
		step.do()
		if got := urlsOf(p.current()); got != step.want {
			t.Fatalf("%s: got %q, want %q", step.reason, got, step.want)
		}
	}
	if !p.silent("lds") || p.silent("another") {
		t.Error("the target is silent since three failures")
	}
	p.answered("lds", 0, targetAnswer{})
	if p.silent("lds") {
		t.Error("a target that answers is not silent, whatever it reports")
	}
}

// TestUnfinished checks that an application is not forgotten because there was no time to
// look it up, and not published before it was.
func TestUnfinished(t *testing.T) {
	p := newPresence(1)
	a, b := application{url: "a", name: "A"}, application{url: "b", name: "B"}
	p.answered("lds", 0, targetAnswer{found: []application{a, b}})
	a.name, a.isUnfinished = "host", true
	p.answered("lds", 0, targetAnswer{found: []application{a, {url: "new", isUnfinished: true}}, isPartial: true})
	if got := urlsOf(p.current()); got != "a b" || p.current()[0].name != "A" {
		t.Errorf("after a partial answer: %q, %+v; want a and b as they were", got, p.current())
	}
	p.answered("lds", 0, targetAnswer{found: []application{a}})
	if got := urlsOf(p.current()); got != "a" || p.current()[0].name != "A" {
		t.Errorf("after an answer without b: %q, %+v; want a as it was", got, p.current())
	}
}

func TestRememberedAreBounded(t *testing.T) {
	p := newPresence(1)
	for target := range 4 {
		var found []application
		for i := range maxRemembered / 3 {
			found = append(found, application{url: fmt.Sprint(target, " ", i)})
		}
		p.answered(fmt.Sprint(target), target, targetAnswer{found: found})
	}
	if n := len(p.current()); n != maxRemembered {
		t.Errorf("%d applications are remembered, want %d", n, maxRemembered)
	}
}

func TestOrder(t *testing.T) {
	p := newPresence(1)
	p.answered("x", 1, targetAnswer{found: []application{{url: "a"}, {url: "c"}}})
	p.answered("y", 0, targetAnswer{found: []application{{url: "z"}, {url: "b"}}})
	if got := urlsOf(p.current()); got != "b z a c" {
		t.Errorf("got %s, want the first target's first", got)
	}
	p.failed("y", 0)
	if got := urlsOf(p.current()); got != "a c" {
		t.Errorf("got %s, want only those of x, as one miss is enough", got)
	}
}
