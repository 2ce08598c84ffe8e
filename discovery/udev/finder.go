package udev

import (
	"context"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"akri.sh/akri/discovery/udev/details"
)

const (
	// allDevices is the path that all devices are below.
	allDevices = "/devices"
	// udevdTimeout is how long a device may wait for its entry in udevd's database, if what is
	// known of it depends on that.
	udevdTimeout = 3 * time.Second
	// errorPatience is how long the error of a driver leaves open whether a file has
	// content. After that, the file counts as missing.
	errorPatience = 30 * time.Second
	// maxMatches bounds the devices that match, and maxMatchBytes the values of each that
	// discoveryDetails request. The agent accepts 1000 devices of a Configuration, and a
	// list of 4 MiB.
	maxMatches    = 1000
	maxMatchBytes = 4096
)

// match is a device that matches a rule.
type match struct {
	path string
	// device is the path of the device itself or, if it has no device file, of its
	// nearest ancestor with one.
	device string
	// node is the device file, and links are udev's links that it claims.
	node  string
	links []string
	// priority is that of the claims, and written is when udevd made them.
	priority int
	written  time.Time
	// name is what the device says that it is; empty if it does not.
	name string
	// properties are the values of Details.Properties, without missing ones.
	properties map[string]string
	// id is the value of Details.ID; empty if one of its parts is missing.
	id string
	// iommuGroup is the number of the device's group, if it has one.
	iommuGroup string
}

// finder keeps the devices that match the rules of one request. It is not safe for
// concurrent use.
type finder struct {
	tree    *tree
	details *details.Details
	// resource is Akri's devicePluginResourceName, which may be empty, and vfio is Akri's
	// vfioPassthrough.
	resource string
	vfio     bool
	// matches are by the path of the device that matches.
	matches map[string]*match
	// undecided is since when devices could not be judged, because something could not
	// be read or udevd had not finished. Those that were known are still in matches.
	undecided map[string]time.Time
	// duplicates is how many devices have an id that is not theirs alone.
	duplicates int
	// usesDatabase is whether udevd's database was looked at.
	usesDatabase bool
	// maxMatches is the constant, except in tests.
	maxMatches int
}

func newFinder(t *tree, d *details.Details) *finder {
	return &finder{
		tree: t, details: d, maxMatches: maxMatches,
		matches: map[string]*match{}, undecided: map[string]time.Time{},
	}
}

// pass is one evaluation of some devices and of those below them.
type pass struct {
	*finder
	snapshot *snapshot
	now      time.Time
	// changed are the paths of these devices.
	changed []string
	// before are the matches of the last pass.
	before map[string]*match
	// incomplete is why devices may be missing, or nil.
	incomplete error
}

// look looks at some devices, and at those below them, again. After an error, there may
// be more, but the known ones are up to date.
func (f *finder) look(ctx context.Context, now time.Time, changed []string) error {
	p := &pass{finder: f, snapshot: f.tree.snapshot(), now: now, changed: changed, before: f.matches}
	p.snapshot.udevd = f.tree.udevd()
	f.matches = maps.Clone(p.before)
	maps.DeleteFunc(f.matches, func(devPath string, _ *match) bool { return p.hasChanged(devPath) })
	for devPath := range p.before { // first, so that others do not take their places
		p.consider(devPath)
	}
	p.subsystems(ctx, "class", "")
	p.subsystems(ctx, "bus", "devices")
	f.usesDatabase = f.usesDatabase || p.snapshot.usesDatabase
	if ctx.Err() != nil {
		f.matches = p.before
		return ctx.Err()
	}
	maps.DeleteFunc(f.undecided, func(devPath string, _ time.Time) bool { return !f.tree.exists(devPath) })
	return p.incomplete
}

// hasChanged reports whether a device is one of those to look at, or below one.
func (p *pass) hasChanged(devPath string) bool {
	return slices.ContainsFunc(p.changed, func(top string) bool { return isWithin(devPath, top) })
}

// isWithin reports whether a path is another one or below it.
func isWithin(devPath, top string) bool {
	rest, ok := strings.CutPrefix(devPath, top)
	return ok && (rest == "" || rest[0] == '/')
}

// note records that devices may be missing because of an error.
func (p *pass) note(err error) {
	if err != nil && !isAbsent(err) && p.incomplete == nil {
		p.incomplete = fmt.Errorf("sysfs cannot be read: %w", err)
	}
}

// subsystems looks at the devices of all subsystems that are listed in a directory.
func (p *pass) subsystems(ctx context.Context, dir, inner string) {
	entries, err := p.tree.files.readDir(filepath.Join(p.tree.sys, dir))
	if err != nil && p.incomplete == nil {
		p.incomplete = fmt.Errorf("sysfs cannot be read: %w", err) // also if it is missing
	}
	for _, subsystem := range entries {
		admits := func(r details.Rule) bool { return r.Admits(details.Subsystem, subsystem.Name()) }
		if ctx.Err() == nil && slices.ContainsFunc(p.details.Rules, admits) {
			p.members(filepath.Join(p.tree.sys, dir, subsystem.Name(), inner))
		}
	}
}

// members looks at the devices of one subsystem. A subsystem may be gone, or be a file.
func (p *pass) members(dir string) {
	entries, err := p.tree.files.readDir(dir)
	p.note(err)
	for _, entry := range entries {
		admits := func(r details.Rule) bool { return r.Admits(details.Kernel, kernelName(entry.Name())) }
		if !slices.ContainsFunc(p.details.Rules, admits) {
			continue
		}
		devPath, err := p.tree.resolve(filepath.Join(dir, entry.Name()))
		p.note(err)
		if err == nil {
			p.consider(devPath)
		}
	}
}

// consider records a device if it matches. If that depends on something that cannot be
// read yet, what was known of the device stays. Messages to agents are UTF-8, so a path that
// is not cannot be sent.
func (p *pass) consider(devPath string) {
	if !p.hasChanged(devPath) || !utf8.ValidString(devPath) || p.snapshot.device(devPath).considered {
		return
	}
	device, former := p.snapshot.device(devPath), p.before[devPath]
	device.considered = true
	since, isOpen := p.undecided[devPath]
	p.snapshot.open = 0
	if isOpen {
		p.snapshot.open = p.now.Sub(since)
	}
	verdict := p.judge(device)
	if verdict != details.No && former == nil && len(p.matches) >= p.maxMatches {
		p.tree.failed(failedTooMany)
		verdict = details.No
	}
	if verdict == details.No && former == nil {
		delete(p.undecided, devPath)
		return
	}
	var m *match
	if verdict == details.Yes {
		device.Unread() // of what was requested before
		if m = p.describe(device); device.Unread() {
			verdict = details.Unknown
		}
	}
	switch exists := p.tree.exists(devPath); {
	case exists && verdict == details.Unknown:
		if former != nil {
			p.matches[devPath] = former
		}
		if !isOpen {
			p.undecided[devPath] = p.now
		}
	case exists && verdict == details.Yes:
		p.matches[devPath] = m
		fallthrough
	default:
		delete(p.undecided, devPath)
	}
}

// judge compares a device with the rules.
func (p *pass) judge(device *sysDevice) details.Verdict {
	verdict := details.No
	for _, rule := range p.details.Rules {
		if verdict = max(verdict, rule.Matches(device)); verdict == details.Yes {
			break
		}
	}
	return verdict
}

// describe returns what agents may get to know about a device that matches.
func (p *pass) describe(device *sysDevice) *match {
	publishedAs := device.withNode()
	m := &match{path: device.path, device: publishedAs.path, node: publishedAs.node(), properties: map[string]string{}}
	m.name = printable(publishedAs.displayName())
	if p.details.Symlinks && m.node != "" {
		data := publishedAs.data()
		m.links, m.priority, m.written = data.links, data.priority, p.tree.writtenTime(publishedAs.recordName())
	}
	left := maxMatchBytes
	value := func(r details.Reference) (string, bool) {
		text, found := r.Value(publishedAs)
		if !found {
			text, found = r.Value(device)
		}
		if text = printable(text); len(text) > left {
			p.tree.failed(failedTooLarge)
			return "", false
		}
		left -= len(text)
		return text, found
	}
	parts := make([]string, 0, len(p.details.ID))
	for _, reference := range p.details.ID {
		if text, found := value(reference); found {
			parts = append(parts, text)
		}
	}
	if len(parts) == len(p.details.ID) {
		m.id = strings.Join(parts, " ")
	}
	for _, name := range slices.Sorted(maps.Keys(p.details.Properties)) {
		if text, found := value(p.details.Properties[name]); found {
			m.properties[name] = text
		}
	}
	group, err := p.tree.files.readlink(filepath.Join(p.tree.sys, m.device, "iommu_group"))
	p.snapshot.note(p.tree.unread(err))
	m.iommuGroup = path.Base(group)
	return m
}

// printable replaces what cannot be in an environment variable of a container, or in a
// message to the agent. Devices choose their names freely.
func printable(value string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' && c != '\n' && c != '\t' || c == 0x7f {
			return utf8.RuneError
		}
		return c
	}, strings.ToValidUTF8(value, string(utf8.RuneError)))
}
