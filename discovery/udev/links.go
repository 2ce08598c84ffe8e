package udev

import (
	"maps"
	"path/filepath"
	"slices"
)

// findClaims finds the highest priority with which any device claims the links of the
// matches. In udev, a link leads to the device with the highest one, and among those with
// equal ones to that which udevd has seen last (link_update in udev-node.c). After an error,
// the former claims count.
func (p *pass) findClaims() error {
	if !slices.Contains(p.changed, allDevices) && maps.Equal(p.matches, p.before) {
		return nil // when udevd changes claims of other devices, a scan follows
	}
	claims := map[string]int{}
	for _, m := range p.matches {
		for _, link := range m.links {
			if former, found := claims[link]; !found || m.priority > former {
				claims[link] = m.priority
			}
		}
	}
	dir := filepath.Join(p.tree.run, "data")
	entries, err := p.tree.files.readDir(dir)
	if err = p.tree.unread(err); err != nil {
		return err
	}
	for _, entry := range entries {
		if len(claims) == 0 {
			break
		}
		name := entry.Name()
		text, err := p.tree.files.read(filepath.Join(dir, name), maxDatabaseBytes)
		if err = p.tree.unread(err); err != nil {
			return err
		}
		// udevd may not have removed the entry of a device that is gone. Others than those of
		// block and character devices have no links.
		device := filepath.Join(p.tree.sys, "dev", map[byte]string{'b': "block", 'c': "char"}[name[0]], name[1:], "uevent")
		record := parseRecord(text)
		for _, link := range record.links {
			if former, wanted := claims[link]; wanted && record.priority > former && p.tree.has(device) {
				claims[link] = record.priority
			}
		}
	}
	p.claims = claims
	return nil
}

// links returns which member of a unit gets each link. Links that another device claims with
// a higher priority are missing.
func (f *finder) links(u *unit) map[string]*match {
	owners := map[string]*match{}
	for _, m := range u.members {
		for _, link := range m.links {
			former := owners[link]
			if m.priority >= f.claims[link] && (former == nil || former.node != m.node && !m.written.Before(former.written)) {
				owners[link] = m
			}
		}
	}
	for _, m := range u.members {
		delete(owners, m.node) // udevd does not replace device files
	}
	return owners
}
