package wsdiscovery

import (
	"net/url"
	"slices"
	"strings"
)

// Target is a device that can be discovered.
type Target struct {
	UUID   string // without "urn:uuid:"
	Types  []Type
	Scopes []string
	XAddr  string // URL of the device service
}

// address returns the address that identifies the device.
func (t Target) address() string { return "urn:uuid:" + t.UUID }

// The rules for comparing scopes.
const (
	matchByURI    = discoveryNamespace + "/rfc3986"
	matchByString = discoveryNamespace + "/strcmp0"
)

// Matches reports whether a message looks for the device: all types and all scopes of a
// Probe must match.
func (t Target) Matches(m Message) bool {
	if m.Resolve != "" {
		return strings.EqualFold(m.Resolve, t.address())
	}
	for _, wanted := range m.Types {
		if !slices.Contains(t.Types, wanted) {
			return false
		}
	}
	for _, wanted := range m.Scopes {
		if !slices.ContainsFunc(t.Scopes, func(have string) bool { return matchScope(wanted, have, m.MatchBy) }) {
			return false
		}
	}
	return true
}

// matchScope compares a wanted scope with one of the device by a rule.
func matchScope(wanted, have, rule string) bool {
	switch rule {
	case matchByString:
		return wanted == have
	case "", matchByURI:
	default:
		return false
	}
	w, err := url.Parse(wanted)
	if err != nil {
		return false
	}
	h, err := url.Parse(have)
	if err != nil || !strings.EqualFold(w.Scheme, h.Scheme) || !strings.EqualFold(w.Host, h.Host) {
		return false
	}
	// The path matches by whole segments.
	prefix, path := strings.TrimSuffix(w.EscapedPath(), "/"), strings.TrimSuffix(h.EscapedPath(), "/")
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}
