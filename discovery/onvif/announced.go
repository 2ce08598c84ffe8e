package onvif

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"akri.sh/akri/discovery/onvif/details"
	"akri.sh/akri/discovery/onvif/wsdiscovery"
	"akri.sh/akri/internal/deadline"
)

// announced records an announcement from a host. It reports whether a probe would tell
// more: the device has not said what it is, or where.
func (t *tracker) announced(now time.Time, from netip.Addr, a wsdiscovery.Announcement) (probe bool) {
	if a.Kind == wsdiscovery.Bye {
		t.suspect(now, a.UUID, func(c *camera) bool { return c.from == from })
		return false
	}
	is, scoped := a.IsONVIF(), len(a.Scopes) > 0
	switch admitted := admits(t.settings, a.UUID, a.Scopes); {
	case len(a.Types) > 0 && !is:
		return false
	case is && scoped && !admitted:
		t.exclude(from, a.UUID)
		return false
	case a.Kind == wsdiscovery.Hello && (len(a.XAddrs) == 0 || !scoped && (len(a.Types) == 0 || t.settings.Scopes != nil)):
		return true
	case !is:
		return false
	default:
		t.record(now, from, a, admitted)
		return false
	}
}

// record records that a device is at its URLs. If it is not admitted, it has not said its
// scopes this time, so that only the cameras that are known count.
func (t *tracker) record(now time.Time, from netip.Addr, a wsdiscovery.Announcement, admitted bool) {
	if len(a.XAddrs) == 0 {
		a.XAddrs = []string{usualURL(from)}
	}
	var fault error
	heard := false
	for _, xaddr := range a.XAddrs {
		if err := checkURL(xaddr, from, t.settings); err != nil {
			fault = fmt.Errorf("the URL %s: %w", clean(xaddr), err)
			continue
		}
		k := t.keyOf(xaddr, a.UUID)
		if admitted || t.cameras[k] != nil {
			t.hear(now, from, k, xaddr, a.Kind == wsdiscovery.Hello)
		}
		if c := t.cameras[k]; c != nil { // what one announcement leaves out stays
			name, hardware := cmp.Or(scope(a.Scopes, "name"), c.name), cmp.Or(scope(a.Scopes, "hardware"), c.hardware)
			t.changed = t.changed || c.name != name || c.hardware != hardware
			c.name, c.hardware = name, hardware
		}
		heard = true
	}
	if !heard { // else it is another address of the camera
		t.Once(failedForeign, from.String(), fault)
	}
}

// keyOf returns the key of a camera. If its UUID is not its id, because it may change, the first
// one that was announced counts.
func (t *tracker) keyOf(written, uuid string) key {
	k := key{normalURL(written), uuid}
	if t.settings.ID == details.ByMAC || t.settings.ID == details.BySerial {
		for _, c := range t.byHost[k.host()] {
			if c.url == k.url && c.uuid != "" {
				return c.key
			}
		}
	}
	return k
}

func (t *tracker) hear(now time.Time, from netip.Addr, k key, written string, hello bool) {
	c := t.cameras[k]
	if c == nil {
		if c = t.add(now, from, k, written); c == nil {
			return
		}
		// It may have another address now.
		t.suspect(now, k.uuid, func(other *camera) bool { return other.host != c.host })
	}
	// The shortest spelling counts: the one without the usual port.
	if cmp.Or(len(written)-len(c.written), strings.Compare(written, c.written)) < 0 {
		c.written, t.changed = written, true
	}
	if c.missed > 0 {
		c.from = from // another host may speak for it now, if foreign URLs are allowed
	}
	c.heard, c.missed, c.suspicion = true, 0, 0
	if hello && c.found.IsZero() && now.Sub(c.hello) >= minHelloPause {
		// It has restarted, so that earlier failures mean nothing.
		c.hello, c.failures, c.slow = now, 0, false
		t.plan(c, deadline.Earliest(now, c.due)) // it keeps its place among those that wait
	}
}

// exclude removes the cameras of a device that has said that the filter for scopes no
// longer admits it. This counts only from the host that has announced them.
func (t *tracker) exclude(from netip.Addr, uuid string) {
	for _, c := range slices.Clone(t.byUUID[uuid]) {
		if c.from == from {
			t.remove(c)
		}
	}
}

// suspect has the cameras of a device checked that may be gone. What says so can be forged,
// so that they are removed only if they do not answer.
func (t *tracker) suspect(now time.Time, uuid string, gone func(*camera) bool) {
	for _, c := range t.byUUID[uuid] {
		if gone(c) && !c.found.IsZero() && c.suspicion == 0 {
			c.suspicion = 1
			t.plan(c, now)
		}
	}
}

// listed adds the device service of a host in the details that has not announced itself.
func (t *tracker) listed(now time.Time, host netip.Addr) {
	k := key{url: usualURL(host)}
	if len(t.byHost[k.host()]) > 0 {
		return
	}
	if c := t.add(now, host.Unmap(), k, k.url); c != nil {
		c.listed = true
	}
}

// usualURL returns the URL of the device service of most cameras.
func usualURL(host netip.Addr) string {
	return normalURL("http://" + netip.AddrPortFrom(host.Unmap(), 80).String() + "/onvif/device_service")
}
