package udev

// claims returns the highest priority with which a match claims each link. In udev, a link
// leads to the device with the highest one, and among those with equal ones to that which
// udevd has seen last (link_update in udev-node.c).
func (f *finder) claims() map[string]int {
	claims := map[string]int{}
	for _, m := range f.matches {
		for _, link := range m.links {
			if former, found := claims[link]; !found || m.priority > former {
				claims[link] = m.priority
			}
		}
	}
	return claims
}

// links returns which member gets each link. Links that a match of another unit claims with a
// higher priority are missing.
func (u *unit) links(claims map[string]int) map[string]*match {
	owners := map[string]*match{}
	for _, m := range u.members {
		for _, link := range m.links {
			former := owners[link]
			if m.priority == claims[link] && (former == nil || former.node != m.node && !m.written.Before(former.written)) {
				owners[link] = m
			}
		}
	}
	for _, m := range u.members {
		delete(owners, m.node) // udevd does not replace device files
	}
	return owners
}
