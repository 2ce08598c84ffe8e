package udev

import "path/filepath"

// numberDirs are the directories of sysfs that have devices by their numbers, by the first
// letter of the devices' entries in udev's database.
var numberDirs = map[byte]string{'b': "dev/block", 'c': "dev/char"}

// findClaims finds the highest priority with which any device claims the links of the
// matches. In udev, a link leads to the device with the highest one, and among those with
// equal ones to that which udevd has seen last (link_update in udev-node.c).
func (p *pass) findClaims() {
	claims := map[string]int{}
	for _, m := range p.matches {
		for _, link := range m.links {
			if former, found := claims[link]; !found || m.priority > former {
				claims[link] = m.priority
			}
		}
	}
	if len(claims) > 0 {
		if err := p.findOthers(claims); err != nil {
			p.note(err)
			return // until all claims are known again, the former ones count
		}
	}
	p.claims = claims
}

// findOthers raises priorities to those of other devices.
func (p *pass) findOthers(claims map[string]int) error {
	dir := filepath.Join(p.tree.run, "data")
	entries, err := p.tree.files.readDir(dir)
	if err != nil {
		return p.tree.unread(err)
	}
	for _, entry := range entries {
		numbers, found := numberDirs[entry.Name()[0]]
		if !found {
			continue
		}
		text, err := p.tree.files.read(filepath.Join(dir, entry.Name()), maxDatabaseBytes)
		if err = p.tree.unread(err); err != nil {
			return err
		}
		other := parseRecord(text)
		for _, link := range other.links {
			former, wanted := claims[link] // udevd may not have removed the entry of a device that is gone
			if wanted && other.priority > former && p.tree.has(filepath.Join(p.tree.sys, numbers, entry.Name()[1:], "uevent")) {
				claims[link] = other.priority
			}
		}
	}
	return nil
}

// links returns which device file each link of a unit leads to. Links that another device
// claims with a higher priority are missing.
func (f *finder) links(u *unit) map[string]string {
	nodes, owners := map[string]string{}, map[string]*match{}
	for _, m := range u.members {
		for _, link := range m.links {
			claimed, found := f.claims[link]
			former := owners[link]
			if (!found || m.priority >= claimed) && (former == nil || !m.written.Before(former.written)) {
				owners[link], nodes[link] = m, m.node
			}
		}
	}
	for _, m := range u.members {
		delete(nodes, m.node) // udevd does not replace device files
	}
	return nodes
}
