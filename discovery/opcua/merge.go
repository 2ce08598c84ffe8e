package opcua

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/opcua/details"
)

// devices returns one device for each application that passes the filters, ordered by ID.
//
// With id: url, applications are the same if they have the same URL, or if they have the
// same application URI and an address in common: the same server, under several names.
// Equal application URIs alone prove nothing, since many servers have a default one. With
// id: applicationUri, the author says that they are unique.
//
// A device has the URL of the first target that reports it. Applications must be ordered
// as [search.current] orders them.
func devices(d *details.Details, applications []application) []discovery.Device {
	groups := group(applications, d.ID == details.IDByApplicationURI)
	byID := map[string]discovery.Device{}
	for _, members := range groups {
		merged := merge(members)
		if !admits(d, merged) {
			continue
		}
		device := merged.device(d.ID)
		if _, taken := byID[device.ID]; !taken {
			byID[device.ID] = device
		}
	}
	all := make([]discovery.Device, 0, len(byID))
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		all = append(all, byID[id])
	}
	return all
}

// group returns applications that are the same, in the order of their first members.
func group(applications []application, byURI bool) [][]application {
	var groups [][]application
	for _, a := range applications {
		first := -1 // the first group of the application
		for i, members := range groups {
			switch {
			case !slices.ContainsFunc(members, func(b application) bool { return same(a, b, byURI) }):
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
	return a.url == b.url || a.uri != "" && a.uri == b.uri && (byURI ||
		slices.ContainsFunc(a.addresses, func(each netip.AddrPort) bool { return slices.Contains(b.addresses, each) }))
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
