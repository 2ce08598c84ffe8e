package opcua

import (
	"cmp"
	"maps"
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
	type key struct{ url, uri, address string }
	first := map[key]int{}                  // the first application with a key
	label := make([]int, len(applications)) // the first member of the group
	join := func(i int, k key) {
		other, found := first[k]
		if !found {
			first[k] = i
			return
		}
		if a, b := label[i], label[other]; a != b {
			for each := range i + 1 {
				if label[each] == max(a, b) {
					label[each] = min(a, b)
				}
			}
		}
	}
	for i, a := range applications {
		label[i] = i
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
	groups := make([][]application, len(applications))
	for i, a := range applications {
		groups[label[i]] = append(groups[label[i]], a)
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
