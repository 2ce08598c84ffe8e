package opcua

import (
	"maps"
	"net/netip"
	"slices"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/opcua/details"
)

// maxDevices bounds the devices of a request; agents accept no more.
const maxDevices = 10000

// devices returns one device for each application that passes the filters, ordered by ID.
//
// With id: url, applications are the same if they have the same URL, or if they have the
// same application URI and an address in common: the same server, under several names.
// Equal application URIs alone prove nothing, since many servers have a default one. With
// id: applicationUri, the author says that they are unique.
//
// A device has the URL of the first target that reports it. Applications must be ordered
// as [presence.current] orders them.
func devices(d *details.Details, applications []application) []discovery.Device {
	groups := group(applications, d.ID == details.IDByApplicationURI)
	byID := map[string]discovery.Device{}
	for _, members := range groups {
		merged := merge(members)
		if !admits(d, merged) {
			continue
		}
		device := merged.device(d.ID)
		if _, taken := byID[device.ID]; !taken && len(byID) < maxDevices {
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
	parent := make([]int, len(applications))
	for i := range parent {
		parent[i] = i
	}
	root := func(i int) int {
		for parent[i] != i {
			parent[i] = parent[parent[i]]
			i = parent[i]
		}
		return i
	}
	type key struct {
		url, uri string
		address  netip.AddrPort
	}
	first := map[key]int{}
	join := func(i int, k key) {
		other, found := first[k]
		if !found {
			first[k] = i
			return
		}
		a, b := root(i), root(other)
		parent[max(a, b)] = min(a, b)
	}
	for i, a := range applications {
		join(i, key{url: a.url})
		if a.uri == "" {
			continue
		}
		if byURI {
			join(i, key{uri: a.uri})
		}
		for _, address := range a.addresses {
			join(i, key{uri: a.uri, address: address})
		}
	}
	var groups [][]application
	index := map[int]int{} // of the group of a root
	for i, a := range applications {
		at, found := index[root(i)]
		if !found {
			at = len(groups)
			index[root(i)] = at
			groups = append(groups, nil)
		}
		groups[at] = append(groups[at], a)
	}
	return groups
}

// merge returns the first application, with what only others report.
func merge(same []application) application {
	merged := same[0]
	for _, other := range same[1:] {
		if !merged.isKindKnown && other.isKindKnown {
			merged.kind, merged.isKindKnown = other.kind, true
			merged.name = other.name // a record of a network has the name of the host
		}
		for _, field := range []struct {
			to   *string
			from string
		}{
			{&merged.name, other.name},
			{&merged.uri, other.uri},
			{&merged.product, other.product},
			{&merged.endpoints, other.endpoints},
		} {
			if *field.to == "" {
				*field.to = field.from
			}
		}
	}
	return merged
}
