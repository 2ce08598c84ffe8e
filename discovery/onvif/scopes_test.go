package onvif

import (
	"net/netip"
	"slices"
	"testing"

	"akri.sh/akri/discovery/onvif/wsdiscovery"
)

const (
	gate  = "onvif://www.onvif.org/name/gate"
	cells = "onvif://www.onvif.org/name/cells"
)

// TestScopesChange has a camera at the gate that becomes one of the cells.
func TestScopesChange(t *testing.T) {
	const include, exclude = "scopes: {items: ['" + gate + "']}", "scopes: {action: Exclude, items: ['" + cells + "']}"
	other := netip.MustParseAddr("10.0.0.9")
	type announcement = wsdiscovery.Announcement
	for name, tc := range map[string]struct {
		details string
		kind    wsdiscovery.Kind
		from    netip.Addr // its own host if it is zero
		change  func(*announcement)
		stays   bool
	}{
		"an answer":                 {details: include, kind: wsdiscovery.Match},
		"an answer, with Exclude":   {details: exclude, kind: wsdiscovery.Match},
		"Hello":                     {details: include, kind: wsdiscovery.Hello},
		"Hello without addresses":   {details: include, kind: wsdiscovery.Hello, change: func(a *announcement) { a.XAddrs = nil }},
		"Hello without types":       {details: include, kind: wsdiscovery.Hello, change: func(a *announcement) { a.Types = nil }},
		"an answer without scopes":  {details: include, kind: wsdiscovery.Match, change: func(a *announcement) { a.Scopes = nil }, stays: true},
		"Hello without scopes":      {details: include, kind: wsdiscovery.Hello, change: func(a *announcement) { a.Scopes = nil }, stays: true},
		"another host":              {details: include, kind: wsdiscovery.Match, from: other, stays: true},
		"another host, if accepted": {details: include + "\nallowForeignXAddrs: true", kind: wsdiscovery.Match, from: other, stays: true},
		"itself, if all are accepted": {
			details: include + "\nallowForeignXAddrs: true", kind: wsdiscovery.Match,
		},
		"another device's": {details: include, kind: wsdiscovery.Match, change: func(a *announcement) { a.UUID = "uuid-7" }, stays: true},
		"as a printer": {
			details: include, kind: wsdiscovery.Match, stays: true,
			change: func(a *announcement) { a.Types = []string{"wsdp:Device"} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, tc.details)
			b.hears(wsdiscovery.Match, 1)
			b.works(1)
			b.window()
			b.wants("before", 1)
			from, a := cameraNumber(tc.kind, 1)
			a.Scopes = []string{"onvif://www.onvif.org/type/ptz", cells}
			if tc.change != nil {
				tc.change(&a)
			}
			if tc.from.IsValid() {
				from = tc.from
			}
			b.announced(b.now, from, a)
			if tc.stays {
				b.wants("after", 1)
				return
			}
			if !b.changed {
				t.Error("no change")
			}
			b.wants("after")
			b.hears(wsdiscovery.Match, 1)
			b.works(1)
			b.wants("back at the gate", 1)
		})
	}
}

// TestHelloWithoutScopes is one of a camera that the filter may exclude: it must be asked.
func TestHelloWithoutScopes(t *testing.T) {
	for _, text := range []string{"scopes: {items: ['" + gate + "']}", "scopes: {action: Exclude, items: ['" + gate + "']}"} {
		b := newBench(t, text)
		from, a := cameraNumber(wsdiscovery.Hello, 1)
		a.Scopes = nil
		if !b.announced(b.now, from, a) || len(b.cameras) > 0 {
			t.Errorf("%s: no probe, or %d cameras", text, len(b.cameras))
		}
	}
	b := newBench(t, "")
	from, a := cameraNumber(wsdiscovery.Hello, 1)
	a.Types, a.XAddrs = []string{"wsdp:Device"}, nil
	if b.announced(b.now, from, a) {
		t.Error("a computer causes a probe")
	}
}

// TestListedHostIsExcluded has an address in the details at which nothing announces itself. The
// filter counts for the scopes that the camera tells when it is asked.
func TestListedHostIsExcluded(t *testing.T) {
	for text, admitted := range map[string][]string{
		"scopes: {action: Exclude, items: ['" + gate + "']}": {cells},
		"scopes: {action: Include, items: ['" + gate + "']}": {gate},
	} {
		for _, said := range [][]string{nil, {gate}, {cells}} {
			b := newBench(t, "{addresses: [10.0.0.1], "+text+"}")
			for range 3 {
				b.window()
				b.listed(b.now, b.settings.Hosts()[0])
				for _, r := range b.begin(b.now) {
					b.ended(b.now, outcome{request: r, alive: true, uuid: "uuid-1", scopes: said})
				}
			}
			if got := len(b.devices()) == 1; got != slices.Equal(said, admitted) {
				t.Errorf("%s, and it says %q: it is a device: %v", text, said, got)
			}
		}
	}
}
