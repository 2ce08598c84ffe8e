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
// common, or one claims an address of the other: the same server, under several names. Equal application URIs alone prove nothing,
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

// group returns applications that are the same, in the order of their first members. Networks
// may have thousands, so they are not compared with each other.
func group(applications []application, byURI bool) [][]application {
	before := make([]int, len(applications)) // one that is the same, or the application itself
	first := func(i int) int {
		for before[i] != i {
			before[i] = before[before[i]] // the next time is shorter
			i = before[i]
		}
		return i
	}
	type feature struct {
		uri, id string
		address netip.AddrPort
	}
	owners := map[feature]int{} // the first application with a feature
	share := func(i int, f feature, isOwner bool) {
		owner, ok := owners[f]
		switch {
		case ok:
			i, owner = first(i), first(owner)
			before[max(i, owner)] = min(i, owner)
		case isOwner:
			owners[f] = i
		}
	}
	for i, a := range applications {
		before[i] = i
		if a.uri == "" {
			continue
		}
		if _, ok := owners[feature{id: a.id}]; !ok { // for those without a URI
			owners[feature{id: a.id}] = i
		}
		if byURI {
			a.id = ""
		}
		share(i, feature{uri: a.uri, id: a.id}, true)
		for _, address := range a.addresses {
			share(i, feature{uri: a.uri, address: address}, true)
		}
	}
	for i, a := range applications {
		if a.uri == "" {
			share(i, feature{id: a.id}, true)
			continue
		}
		for _, claim := range a.urls {
			addr, _ := netip.ParseAddr(claim.url.Host)
			share(i, feature{uri: a.uri, address: netip.AddrPortFrom(addr.Unmap(), claim.url.Port)}, false)
		}
	}
	groups := make([][]application, len(applications))
	for i, a := range applications {
		groups[first(i)] = append(groups[first(i)], a)
	}
	return slices.DeleteFunc(groups, func(members []application) bool { return members == nil })
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
