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
	// retries are devices that depend on something that could not be read. Those that
	// were known are still in matches.
	retries map[string]retry
	// needsDatabase is whether the result depends on udevd's database.
	needsDatabase bool
	// maxSubtree is the constant, except in tests.
	maxSubtree int
}

func newFinder(t *tree, d *details.Details) *finder {
	return &finder{
		tree: t, details: d, needsDatabase: d.NeedsDatabase(), maxSubtree: maxSubtree,
		matches: map[string]*match{}, waiting: map[string]time.Time{}, retries: map[string]retry{},
	}
}

// bytes returns the memory of the matches.
func (f *finder) bytes() int {
	bytes := 0
	for _, m := range f.matches {
		bytes += matchBytes + len(m.device) + len(m.node) + len(m.id)
		for _, link := range m.links {
			bytes += len(link)
		}
		for name, value := range m.properties {
			bytes += len(name) + len(value)
		}
	}
	return bytes
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
	// incomplete is why devices may be missing, or nil.
	incomplete error
}

func (f *finder) pass(now time.Time, first bool) *pass {
	return &pass{
		finder: f, snapshot: f.tree.snapshot(), now: now, first: first, before: f.matches,
		udevd: f.needsDatabase && f.tree.udevd(), left: f.maxSubtree,
	}
}

// scan looks at all devices. After an error, there may be more, but the known ones are up
// to date.
func (f *finder) scan(ctx context.Context, now time.Time, first bool) error {
	p := f.pass(now, first)
	f.matches = map[string]*match{}
	err := p.subsystems(ctx, "class", "")
	if err == nil {
		err = p.subsystems(ctx, "bus", "devices")
	}
	if ctx.Err() != nil {
		f.matches = p.before
		return ctx.Err()
	}
	if err == nil {
		err = p.incomplete
	}
	if err != nil {
		p.reconsider()
	}
	f.forget(func(devPath string) bool { return f.matches[devPath] == nil && !f.tree.exists(devPath) })
	return err
}

// reconsider looks at the known devices that have not been looked at.
func (p *pass) reconsider() {
	for devPath := range p.before {
		if !p.snapshot.device(devPath).considered && p.tree.exists(devPath) {
			p.consider(devPath)
		}
	}
}

// forget removes the devices that nothing is waited for any more.
func (f *finder) forget(gone func(devPath string) bool) {
	maps.DeleteFunc(f.waiting, func(devPath string, _ time.Time) bool { return gone(devPath) })
	maps.DeleteFunc(f.retries, func(devPath string, _ retry) bool { return gone(devPath) })
}

// list returns the entries of a directory, which may be gone.
func (p *pass) list(dir string) []os.DirEntry {
	entries, err := p.tree.files.readDir(dir)
	p.note(err)
	return entries
}

// note records that devices may be missing because of an error.
func (p *pass) note(err error) {
	if err != nil && !isAbsent(err) && p.incomplete == nil {
		p.incomplete = fmt.Errorf("sysfs cannot be read: %w", err)
	}
}

// subsystems looks at the devices of all subsystems that are listed in a directory.
func (p *pass) subsystems(ctx context.Context, dir, inner string) error {
	entries, err := p.tree.files.readDir(filepath.Join(p.tree.sys, dir))
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
	for _, entry := range p.list(dir) {
		name := kernelName(entry.Name())
		if !slices.ContainsFunc(rules, func(r details.Rule) bool { return r.AdmitsKernel(name) }) {
			continue
		}
		devPath, err := p.tree.resolve(filepath.Join(dir, entry.Name()))
		p.note(err)
		if err == nil && p.tree.exists(devPath) {
			p.consider(devPath)
		}
	}
}

// refresh looks at some devices, and at those below them, again. complete is false if
// these are so many that a scan is cheaper, or cannot be listed.
func (f *finder) refresh(ctx context.Context, now time.Time, devPaths []string) (complete bool) {
	p := f.pass(now, false)
	f.matches = maps.Clone(p.before)
	for _, devPath := range devPaths {
		maps.DeleteFunc(f.matches, func(known string, _ *match) bool { return isWithin(known, devPath) })
		f.forget(func(known string) bool { return isWithin(known, devPath) && !f.tree.exists(known) })
		p.walk(devPath)
		if p.left <= 0 || p.incomplete != nil || ctx.Err() != nil {
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
	entries := p.list(filepath.Join(p.tree.sys, devPath))
	if slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == "subsystem" }) {
		p.consider(devPath)
	}
	for _, entry := range entries {
		if entry.IsDir() {
			p.walk(path.Join(devPath, entry.Name()))
		}
	}
}

// consider records a device if it matches. If that depends on something that cannot be
// read, what was known of the device stays. Messages to agents are UTF-8, so a path that
// is not cannot be sent.
func (p *pass) consider(devPath string) {
	if !utf8.ValidString(devPath) {
		return
	}
	device, former := p.snapshot.device(devPath), p.before[devPath]
	device.considered = true
	verdict := p.judge(device)
	if verdict == details.No && former == nil {
		delete(p.retries, devPath)
		return
	}
	if p.udevd && p.wait(device) {
		p.keep(devPath, former)
		delete(p.retries, devPath)
		return
	}
	var m *match
	if verdict == details.Yes {
		p.snapshot.takeMissed() // of what was requested before
		if m = p.describe(device); p.snapshot.takeMissed() {
			verdict = details.Unknown
		}
	}
	if verdict == details.Unknown && p.tree.exists(devPath) {
		p.keep(devPath, former)
		p.retryLater(devPath, p.now)
		return
	}
	delete(p.retries, devPath)
	if verdict == details.Yes && !device.gone {
		p.matches[devPath] = m
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

// keep keeps what was known of a device, if anything.
func (p *pass) keep(devPath string, former *match) {
	if former != nil {
		p.matches[devPath] = former
	}
}

// wait reports whether it is too early to judge a device, because udevd has not finished
// with it.
func (p *pass) wait(device *sysDevice) bool {
	p.snapshot.takeMissed() // of what was requested before
	awaits := device.awaitsUdevd() || device.withNode().awaitsUdevd()
	if p.snapshot.takeMissed() {
		return false // the verdict says whether that matters
	}
	if !awaits {
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
	group, err := p.tree.linkBase(m.device, "iommu_group")
	p.snapshot.missed = p.snapshot.missed || p.snapshot.isUnread(err)
	m.iommuGroup = group
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
