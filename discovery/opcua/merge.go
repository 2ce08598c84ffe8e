package opcua

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/opcua/details"
)

// devices returns one device for each application that passes the filters, ordered by ID.
//
// With id: url, applications are the same if they have the same application URI, or one of
// them none, and the same URL, or if they have the same application URI and an address in
// common: the same server, under several names. Equal application URIs alone prove nothing,
// since many servers have a default one. With id: applicationUri, the author says that they
// are unique.
//
// A device has the URL of the first target that reports it. Applications must be ordered
// as [search.current] orders them.
func devices(d *details.Details, applications []application) []discovery.Device {
	groups := group(applications, d.ID == details.IDByApplicationURI)
	count := map[string]int{}
	for _, members := range groups {
		count[members[0].id]++
	}
	all := make([]discovery.Device, 0, len(groups))
	for _, members := range groups {
		merged := merge(members)
		if !admits(d, merged) {
			continue
		}
		if count[merged.id] > 1 && !merged.isAsked {
			merged.id = distinctID(merged.id, merged)
		}
		all = append(all, merged.device(d.ID))
	}
	slices.SortStableFunc(all, func(a, b discovery.Device) int { return strings.Compare(a.ID, b.ID) })
	return slices.CompactFunc(all, func(a, b discovery.Device) bool { return a.ID == b.ID })
}

// distinctID returns an id for an application whose id another one has, too.
func distinctID(id string, a application) string { return id + "#" + cmp.Or(a.uri, a.name) }

// group returns applications that are the same, in the order of their first members.
func group(applications []application, byURI bool) [][]application {
	var groups [][]application
	for _, a := range applications {
		first := -1 // the first group of the application
		for i, members := range groups {
			isOther := func(b application) bool { return a.uri != "" && b.uri != "" && a.uri != b.uri }
			isSame := func(b application) bool { return same(a, b, byURI) }
			switch {
			case !slices.ContainsFunc(members, isSame) || slices.ContainsFunc(members, isOther):
			case first >= 0 && a.uri == "": // it says nothing about both
			case first < 0:
				first, groups[i] = i, append(members, a)
			default:
				groups[first], groups[i] = append(groups[first], members...), nil
			}
		}
		if first < 0 {
			groups = append(groups, []application{a})
		}
	}
	return slices.DeleteFunc(groups, func(members []application) bool { return members == nil })
}

func same(a, b application, byURI bool) bool {
	if a.uri == "" || a.uri != b.uri {
		return a.id == b.id && (a.uri == "" || b.uri == "")
	}
	knows := func(a, b application) bool {
		return slices.ContainsFunc(a.addresses, func(each netip.AddrPort) bool {
			return slices.Contains(b.addresses, each) ||
				slices.ContainsFunc(b.urls, func(other candidate) bool { return other.url.Address() == each.String() })
		})
	}
	return byURI || a.id == b.id || knows(a, b) || knows(b, a)
}

// merge returns the first application, with what only others report.
func merge(same []application) application {
	merged := same[0]
	for _, other := range same[1:] {
		if merged.kind == "" && other.kind != "" {
			merged.kind, merged.name = other.kind, other.name // a record of a network has the name of the host
		}
		merged.name, merged.uri = cmp.Or(merged.name, other.name), cmp.Or(merged.uri, other.uri)
		merged.product, merged.endpoints = cmp.Or(merged.product, other.product), cmp.Or(merged.endpoints, other.endpoints)
	}
	return merged
}
