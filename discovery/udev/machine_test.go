package udev

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// machine is a tree like sysfs, and the database of udevd, in a temporary directory.
type machine struct {
	t        testing.TB
	sys, run string
}

// newMachine returns a machine with the devices in files of testdata.
func newMachine(t testing.TB, files ...string) *machine {
	t.Helper()
	dir := t.TempDir()
	m := &machine{t: t, sys: filepath.Join(dir, "sys"), run: filepath.Join(dir, "udev")}
	for _, each := range []string{filepath.Join(m.sys, "class"), filepath.Join(m.sys, "bus"), filepath.Join(m.run, "data")} {
		m.must(os.MkdirAll(each, 0o755))
	}
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join("testdata", file))
		m.must(err)
		m.plug(string(text))
	}
	return m
}

func (m *machine) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) write(content string, elements ...string) {
	m.t.Helper()
	file := filepath.Join(elements...)
	m.must(os.MkdirAll(filepath.Dir(file), 0o755))
	m.must(os.WriteFile(file, []byte(content), 0o644))
}

func (m *machine) link(target string, elements ...string) {
	m.t.Helper()
	file := filepath.Join(elements...)
	m.must(os.MkdirAll(filepath.Dir(file), 0o755))
	if err := os.Symlink(target, file); !errors.Is(err, fs.ErrExist) { // another file has the same controller
		m.must(err)
	}
}

// plug adds devices, in the format that testdata/README.md describes.
func (m *machine) plug(text string) {
	m.t.Helper()
	var current []string
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "#") || line == "":
		case strings.HasPrefix(line, "/"):
			m.add(current)
			current = []string{line}
		default:
			current = append(current, strings.TrimPrefix(line, "  "))
		}
	}
	m.add(current)
}

// add adds a device: its path, then its lines.
func (m *machine) add(lines []string) {
	m.t.Helper()
	if len(lines) == 0 {
		return
	}
	dir := filepath.Join(m.sys, lines[0])
	var uevent, database strings.Builder
	subsystem, properties := "", map[string]string{}
	for _, line := range lines[1:] {
		kind, rest, spaced := strings.Cut(line, " ")
		switch {
		case spaced && kind == "subsystem":
			subsystem = rest
			m.link(filepath.Join(m.sys, rest), dir, "subsystem")
		case spaced && kind == "driver":
			m.link(filepath.Join(m.sys, path.Dir(subsystem), "drivers", rest), dir, "driver")
		case spaced && kind == "link":
			name, target, _ := strings.Cut(rest, " ")
			m.link(target, dir, name)
		case spaced && kind == "attr":
			name, value, _ := strings.Cut(rest, " ")
			m.write(value+"\n", dir, name)
		case spaced && kind == "db":
			database.WriteString(rest + "\n")
		default:
			name, value, _ := strings.Cut(line, "=")
			properties[name] = value
			uevent.WriteString(line + "\n")
		}
	}
	m.write(uevent.String(), dir, "uevent")
	if subsystem == "" {
		return
	}
	inner := ""
	if strings.HasPrefix(subsystem, "bus/") {
		inner = "devices"
	}
	m.link(dir, m.sys, subsystem, inner, path.Base(lines[0]))
	if number := properties["MAJOR"]; number != "" {
		kind := "char"
		if subsystem == "class/block" {
			kind = "block"
		}
		m.link(dir, m.sys, "dev", kind, number+":"+properties["MINOR"])
	}
	if index := properties["IFINDEX"]; index != "" {
		m.write(index+"\n", dir, "ifindex")
	}
	if database.Len() > 0 {
		m.store(lines[0], database.String())
	}
}

// store writes a device's entry in the database as udevd does, which renames it.
func (m *machine) store(devPath, text string) {
	m.t.Helper()
	device := m.tree().snapshot().device(devPath)
	m.write(text, m.run, "data", ".#temporary")
	m.must(os.Rename(filepath.Join(m.run, "data", ".#temporary"), filepath.Join(m.run, "data", device.recordName())))
}

// startUdevd makes it look as if udevd were running.
func (m *machine) startUdevd() { m.write("", m.run, "control") }

// unplug removes a device and all below it. Links to them stay and lead nowhere, as for
// a moment in the kernel.
func (m *machine) unplug(devPath string) {
	m.t.Helper()
	m.must(os.RemoveAll(filepath.Join(m.sys, devPath)))
}

func (m *machine) tree() *tree {
	return newTree(m.sys, m.run, func(reason string) { m.t.Logf("failure: %s", reason) })
}

// scan looks at all devices.
func (f *finder) scan(ctx context.Context, now time.Time) error {
	return f.look(ctx, now, []string{allDevices})
}

// again looks at the devices that are undecided.
func (f *finder) again(ctx context.Context, now time.Time) error {
	return f.look(ctx, now, slices.Collect(maps.Keys(f.undecided)))
}

// refresh looks at some devices.
func (f *finder) refresh(ctx context.Context, now time.Time, devPaths []string) (complete bool) {
	return f.look(ctx, now, devPaths) == nil
}

// testHandler is a Handler whose events come from a test.
type testHandler struct {
	*Handler
	hub *hub
}

func newTestHandler(options Options) *testHandler {
	h := &testHandler{Handler: New(options), hub: &hub{subscriptions: map[*subscription]bool{}}}
	h.openEvents = h.hub.open
	return h
}

// hub distributes events to all requests.
type hub struct {
	mu            sync.Mutex // protects what follows
	subscriptions map[*subscription]bool
}

// subscription has the events for one request. Without a device, events were lost.
type subscription struct {
	hub    *hub
	events chan []string
}

func (h *hub) open() (source, error) {
	s := &subscription{hub: h, events: make(chan []string, 100)}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subscriptions[s] = true
	return s, nil
}

func (h *hub) publish(devPaths ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.subscriptions {
		s.events <- devPaths
	}
}

func (s *subscription) next(ctx context.Context) ([]string, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case devPaths := <-s.events:
		if devPaths == nil {
			return nil, errLost
		}
		return devPaths, nil
	}
}

func (s *subscription) close() {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	delete(s.hub.subscriptions, s)
}
