package udev

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"akri.sh/akri/discovery/udev/details"
)

const (
	// udevdTimeout is how long a new device may wait for udevd, if the result depends on
	// udevd's database.
	udevdTimeout = 3 * time.Second
	// maxSubtree bounds the directories that an event makes the finder read. Beyond it,
	// everything is scanned, which reads fewer.
	maxSubtree = 10_000
)

// match is a device that matches a rule.
type match struct {
	// device is the path of the device itself or, if it has no device file, of its
	// nearest ancestor with one.
	device string
	// node is the device file, and links are udev's links to it.
	node  string
	links []string
	// properties are the values of Details.Properties, without missing ones.
	properties map[string]string
	// id is the value of Details.ID; empty if one of its parts is missing.
	id string
	// iommuGroup is the number of the device's group; may be empty.
	iommuGroup string
}

// finder keeps the devices that match the rules of one request. It is not safe for
// concurrent use.
type finder struct {
	tree    *tree
	details *details.Details
	// matches are by the path of the device that matches.
	matches map[string]*match
	// waiting are devices that udevd has not seen, and how long they may wait for that.
	waiting map[string]time.Time
	// needsDatabase is whether the result depends on udevd's database.
	needsDatabase bool
	// maxSubtree is the constant, except in tests.
	maxSubtree int
}

func newFinder(t *tree, d *details.Details) *finder {
	return &finder{
		tree: t, details: d, needsDatabase: d.NeedsDatabase(), maxSubtree: maxSubtree,
		matches: map[string]*match{}, waiting: map[string]time.Time{},
	}
}

// pass is one evaluation.
type pass struct {
	*finder
	snapshot *snapshot
	now      time.Time
	// before are the matches of the last pass.
	before map[string]*match
	// first is whether the handler has just started: then devices do not wait for udevd,
	// which will not look at them again.
	first bool
	udevd bool
	// left is how many more directories may be read.
	left int
}

func (f *finder) pass(now time.Time, first bool) *pass {
	return &pass{
		finder: f, snapshot: f.tree.snapshot(), now: now, first: first, before: f.matches,
		udevd: f.needsDatabase && f.tree.udevd(), left: f.maxSubtree,
	}
}

// scan looks at all devices. After an error, the matches are those of the last scan.
func (f *finder) scan(ctx context.Context, now time.Time, first bool) error {
	p := f.pass(now, first)
	f.matches = map[string]*match{}
	err := p.subsystems(ctx, "class", "")
	if err == nil {
		err = p.subsystems(ctx, "bus", "devices")
	}
	if err != nil {
		f.matches = p.before
		return err
	}
	for devPath := range f.waiting {
		if !f.tree.exists(devPath) {
			delete(f.waiting, devPath)
		}
	}
	return nil
}

// subsystems looks at the devices of all subsystems that are listed in a directory.
func (p *pass) subsystems(ctx context.Context, dir, inner string) error {
	entries, err := os.ReadDir(filepath.Join(p.tree.sys, dir))
	if err != nil {
		return fmt.Errorf("sysfs cannot be read: %w", err)
	}
	for _, entry := range entries {
		rules := slices.DeleteFunc(slices.Clone(p.details.Rules), func(r details.Rule) bool { return !r.AdmitsSubsystem(entry.Name()) })
		if len(rules) == 0 {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		p.members(filepath.Join(p.tree.sys, dir, entry.Name(), inner), rules)
	}
	return nil
}

// members looks at the devices of one subsystem. A subsystem may be gone, or be a file.
func (p *pass) members(dir string, rules []details.Rule) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, entry := range entries {
		name := kernelName(entry.Name())
		if !slices.ContainsFunc(rules, func(r details.Rule) bool { return r.AdmitsKernel(name) }) {
			continue
		}
		if devPath, ok := p.tree.resolve(filepath.Join(dir, entry.Name())); ok && p.tree.exists(devPath) {
			p.consider(devPath)
		}
	}
}

// refresh looks at some devices, and at those below them, again. complete is false if
// these are so many that a scan is cheaper.
func (f *finder) refresh(ctx context.Context, now time.Time, devPaths []string) (complete bool) {
	p := f.pass(now, false)
	f.matches = maps.Clone(p.before)
	for _, devPath := range devPaths {
		maps.DeleteFunc(f.matches, func(known string, _ *match) bool { return isWithin(known, devPath) })
		maps.DeleteFunc(f.waiting, func(known string, _ time.Time) bool { return isWithin(known, devPath) && !f.tree.exists(known) })
		p.walk(devPath)
		if p.left <= 0 || ctx.Err() != nil {
			f.matches = p.before
			return false
		}
	}
	return true
}

// isWithin reports whether a path is another one or below it.
func isWithin(devPath, top string) bool {
	rest, ok := strings.CutPrefix(devPath, top)
	return ok && (rest == "" || rest[0] == '/')
}

// walk looks at a device and all below it.
func (p *pass) walk(devPath string) {
	if p.left--; p.left <= 0 {
		return
	}
	entries, err := os.ReadDir(filepath.Join(p.tree.sys, devPath))
	if err != nil {
		return
	}
	if slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == "subsystem" }) {
		p.consider(devPath)
	}
	for _, entry := range entries {
		if entry.IsDir() {
			p.walk(path.Join(devPath, entry.Name()))
		}
	}
}

// consider records a device if it matches. Messages to agents are UTF-8, so a path that
// is not cannot be sent.
func (p *pass) consider(devPath string) {
	if !utf8.ValidString(devPath) {
		return
	}
	device := p.snapshot.device(devPath)
	matches := slices.ContainsFunc(p.details.Rules, func(r details.Rule) bool { return r.Matches(device) })
	if p.udevd && (matches || p.before[devPath] != nil) && p.wait(device) {
		if former := p.before[devPath]; former != nil {
			p.matches[devPath] = former
		}
		return
	}
	if !matches {
		return
	}
	if m := p.describe(device); !device.gone {
		p.matches[devPath] = m
	}
}

// wait reports whether it is too early to judge a device, because udevd has not finished
// with it.
func (p *pass) wait(device *sysDevice) bool {
	if !device.awaitsUdevd() && !device.withNode().awaitsUdevd() {
		delete(p.waiting, device.path)
		return false
	}
	deadline, known := p.waiting[device.path]
	if !known {
		deadline = p.now
		if !p.first {
			deadline = p.now.Add(udevdTimeout)
		}
		p.waiting[device.path] = deadline
	}
	return p.now.Before(deadline)
}

// nextDeadline returns when the first device has waited long enough for udevd.
func (f *finder) nextDeadline(now time.Time) (deadline time.Time, ok bool) {
	for _, each := range f.waiting {
		if each.After(now) && (!ok || each.Before(deadline)) {
			deadline, ok = each, true
		}
	}
	return deadline, ok
}

// overdue returns the devices that have waited for udevd and are not published.
func (f *finder) overdue(now time.Time) []string {
	var devPaths []string
	for devPath, deadline := range f.waiting {
		if !deadline.After(now) && f.matches[devPath] == nil {
			devPaths = append(devPaths, devPath)
		}
	}
	slices.Sort(devPaths)
	return devPaths
}

// describe returns what agents may get to know about a device that matches.
func (p *pass) describe(device *sysDevice) *match {
	publishedAs := device.withNode()
	m := &match{device: publishedAs.path, node: publishedAs.node(), properties: map[string]string{}}
	if p.details.Symlinks && m.node != "" {
		m.links = publishedAs.links()
	}
	value := func(r details.Reference) (string, bool) {
		text, found := r.Value(publishedAs)
		if !found {
			text, found = r.Value(device)
		}
		return printable(text), found
	}
	for name, reference := range p.details.Properties {
		if text, found := value(reference); found {
			m.properties[name] = text
		}
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
	m.iommuGroup = p.tree.linkBase(m.device, "iommu_group")
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
