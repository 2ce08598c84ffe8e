package udev

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"akri.sh/akri/discovery/udev/details"
)

const (
	oracleRules = 10_000
	// rulesPerParse is less than the bound of one Configuration.
	rulesPerParse = 100
	oracleSeed    = 20261122
)

// setupRules give devices the tags and properties that generated rules look at.
const setupRules = `
SUBSYSTEM=="block", ENV{ORACLE_KIND}="block device", TAG+="blocks"
SUBSYSTEM=="tty|vc", ENV{ORACLE_KIND}="terminal", TAG+="terminals"
KERNEL=="*[02468]", ENV{ORACLE_EVEN}="1", TAG+="even"
KERNEL=="*[02468]", TAG+="blocks_even"
SUBSYSTEM=="net|pci|virtio", TAG+="bus_$attr{vendor}"
`

// TestRulesInNamespaces compares our reading of generated rules with that of
// systemd-udevd. The rules avoid what differs by design; see docs/handlers/udev.md.
func TestRulesInNamespaces(t *testing.T) {
	udevd := enterNamespaces(t)
	makeNodes(t)
	run(t, "ip", "link", "add", "w0", "type", "veth", "peer", "name", "w1")
	run(t, "ip", "link", "add", "link", "w0", "name", "tap-w", "type", "macvtap")
	addZRAM(t)
	devPaths := sampleDevices(t)
	rulesDir := "/run/udev/rules.d"
	write(t, filepath.Join(rulesDir, "10-setup.rules"), setupRules)
	startUdevd(t, udevd)
	// Twice, as rules look at the entries of ancestors.
	for range 2 {
		trigger(t, udevd, devPaths)
	}
	g := newGenerator(t, devPaths)
	texts := g.rules(oracleRules)
	var all strings.Builder
	for i, text := range texts {
		fmt.Fprintf(&all, "ACTION!=\"remove\", %s, ENV{R%d}=\"1\"\n", text, i)
	}
	write(t, filepath.Join(rulesDir, "20-generated.rules"), all.String()+"LABEL=\"end\"\n")
	run(t, filepath.Join(udevd, "bin", "udevadm"), "control", "--reload")
	trigger(t, udevd, devPaths)
	g.compare(texts)
}

// makeNodes makes the device files that udevd expects.
func makeNodes(t testing.TB) {
	for dir, kind := range map[string]uint32{"/sys/dev/block": unix.S_IFBLK, "/sys/dev/char": unix.S_IFCHR} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			properties, err := os.ReadFile(filepath.Join(dir, entry.Name(), "uevent"))
			if err != nil {
				continue // a device that is gone
			}
			for line := range strings.Lines(string(properties)) {
				if name, ok := strings.CutPrefix(strings.TrimSpace(line), "DEVNAME="); ok {
					makeNode(t, kind, entry.Name(), "/dev/"+name)
				}
			}
		}
	}
}

// sampleDevices returns some devices of each subsystem.
func sampleDevices(t testing.TB) []string {
	t.Helper()
	const perSubsystem = 12
	f := newFinder(newTree("/sys", "/run/udev", func(string) {}), parse(t, rules(`KERNEL=="*"`)))
	if err := f.scan(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	count, s := map[string]int{}, f.tree.snapshot()
	var devPaths []string
	for devPath := range f.matches {
		devPaths = append(devPaths, devPath)
	}
	slices.Sort(devPaths)
	return slices.DeleteFunc(devPaths, func(devPath string) bool {
		subsystem := s.device(devPath).Subsystem()
		count[subsystem]++
		return count[subsystem] > perSubsystem
	})
}

// generator makes rules about the values that devices have.
type generator struct {
	t        testing.TB
	random   *rand.Rand
	tree     *tree
	snapshot *snapshot
	devPaths []string
	// values are those that a field has in any device, to find out whether a regular
	// expression means something else than the glob.
	values map[string][]string
	// ambiguous counts values that were not used because of that.
	ambiguous int
}

func newGenerator(t testing.TB, devPaths []string) *generator {
	g := &generator{
		t: t, random: rand.New(rand.NewPCG(oracleSeed, 0)), devPaths: devPaths, values: map[string][]string{},
		tree: newTree("/sys", "/run/udev", func(reason string) { t.Errorf("failure: %s", reason) }),
	}
	g.snapshot = g.tree.snapshot()
	for _, devPath := range devPaths {
		for device := g.snapshot.device(devPath); device != nil; device = device.above() {
			for _, field := range plainFields {
				g.values[field] = append(g.values[field], valuesOf(device, field)...)
			}
		}
	}
	return g
}

// plainFields are the fields without a name in braces.
var plainFields = []string{
	"KERNEL", "SUBSYSTEM", "DRIVER", "DEVPATH", "TAG", "KERNELS", "SUBSYSTEMS", "DRIVERS", "TAGS",
}

// valuesOf returns the values of a device itself.
func valuesOf(device *sysDevice, field string) []string {
	value := ""
	switch strings.TrimSuffix(field, "S") {
	case "KERNEL":
		value = device.Kernel()
	case "SUBSYSTEM":
		value = device.Subsystem()
	case "DRIVER":
		value = device.Driver()
	case "DEVPATH":
		value = device.DevPath()
	case "TAG":
		return device.Tags()
	}
	if value == "" {
		return nil
	}
	return []string{value}
}

// attributeNames are attributes that do not change by themselves.
var attributeNames = []string{
	"address", "addr_len", "ro", "removable", "size", "range", "queue/rotational", "queue/logical_block_size", "vendor", "device", "class",
	"type", "driver", "subsystem", "modalias", "dev", "ext_range", "hidden", "ifindex", "mtu", "missing", "irq", "enable", "iflink",
	"current_driver", "index", "name", "available_clocksource", "dev_id", "duplex", "line", "port", "uartclk",
}

var environmentNames = []string{
	"DEVTYPE", "MAJOR", "MINOR", "SUBSYSTEM", "INTERFACE", "ORACLE_KIND", "ORACLE_EVEN", "DEVNAME", "PCI_ID", "MISSING",
}

// rules returns generated rules.
func (g *generator) rules(count int) []string {
	var texts []string
	for len(texts) < count {
		var conditions []string
		ancestors := 0
		devPath := g.devPaths[g.random.IntN(len(g.devPaths))]
		for range 1 + g.random.IntN(3) {
			condition, plural := g.condition(g.snapshot.device(devPath))
			// udev wants all conditions on ancestors to hold for the same one.
			if condition == "" || plural && ancestors > 0 {
				continue
			}
			if plural {
				ancestors++
			}
			conditions = append(conditions, condition)
		}
		if len(conditions) > 0 {
			texts = append(texts, strings.Join(conditions, ", "))
		}
	}
	return texts
}

func pick[T any](r *rand.Rand, all []T) T { return all[r.IntN(len(all))] }

// condition returns a condition that is likely to hold for a device, or "".
func (g *generator) condition(device *sysDevice) (text string, plural bool) {
	kind := pick(g.random, []string{"plain", "plain", "ATTR", "ATTRS", "ENV"})
	not := g.random.IntN(4) == 0
	source := device
	switch kind {
	case "ATTRS":
		source, plural = g.ancestor(device), true
		fallthrough
	case "ATTR":
		name := pick(g.random, attributeNames)
		value, found := source.Attr(name)
		if !found || !usable(value) {
			value = "0"
		}
		if kind == "ATTR" && not {
			// udev's != does not hold for a missing attribute.
			return fmt.Sprintf(`ATTR{%s}!="%s", ATTR{%s}=="*"`, name, g.pattern(value), name), false
		}
		pattern := g.pattern(value)
		if kind == "ATTRS" && !g.regexAgrees(pattern, g.attributeValues(name)) {
			return "", true
		}
		return fmt.Sprintf(`%s{%s}=="%s"`, kind, name, pattern), plural
	case "ENV":
		name := pick(g.random, environmentNames)
		value, _ := device.Env(name)
		pattern := g.pattern(value)
		if matchesAll(pattern) || not && !g.regexAgrees(pattern, g.environmentValues(name)) {
			return "", false // udev takes a missing property for an empty one
		}
		return fmt.Sprintf(`ENV{%s}%s"%s"`, name, operator(not), pattern), false
	}
	return g.plain(device, not)
}

func (g *generator) plain(device *sysDevice, not bool) (text string, plural bool) {
	field := pick(g.random, plainFields)
	plural = strings.HasSuffix(field, "S")
	if plural {
		device, not = g.ancestor(device), false
	}
	values := valuesOf(device, field)
	if len(values) == 0 {
		values = []string{"nothing"}
	}
	pattern := g.pattern(pick(g.random, values))
	read := plural || field == "DRIVER" || not && field != "SUBSYSTEM"
	switch {
	case field == "TAG" && not:
		return "", false // in udevd 252, it does not hold for a device with another tag; later versions correct that
	case strings.HasPrefix(field, "DRIVER") && matchesAll(pattern):
		return "", false // udev takes a missing driver for an empty one
	case read && !g.regexAgrees(pattern, g.values[field]):
		return "", plural
	}
	return fmt.Sprintf(`%s%s"%s"`, field, operator(not), pattern), plural
}

// matchesAll reports whether an alternative of a pattern is a star.
func matchesAll(pattern string) bool {
	return slices.ContainsFunc(strings.Split(pattern, "|"), func(glob string) bool { return glob != "" && strings.Trim(glob, "*") == "" })
}

func operator(not bool) string {
	if not {
		return "!="
	}
	return "=="
}

// ancestor returns a device or one of its ancestors.
func (g *generator) ancestor(device *sysDevice) *sysDevice {
	for g.random.IntN(2) == 0 && device.above() != nil {
		device = device.above()
	}
	return device
}

// usable reports whether a value can be written between quotes and is not too long.
func usable(value string) bool {
	return len(value) < 80 && !strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c > '~' || strings.ContainsRune(`"\|$%`, c) })
}

// pattern returns a glob that often matches a value.
func (g *generator) pattern(value string) string {
	value = strings.TrimRight(value, " ")
	if !usable(value) {
		value = "x"
	}
	at := func() int { return g.random.IntN(len(value) + 1) }
	switch g.random.IntN(9) {
	case 0:
		return value[:at()] + "*"
	case 1:
		return "*" + value[at():]
	case 2:
		i, j := at(), at()
		return value[:min(i, j)] + "*" + value[max(i, j):]
	case 3:
		if i := at(); i < len(value) {
			return value[:i] + "?" + value[i+1:]
		}
	case 4:
		if i := at(); i < len(value) && strings.ContainsRune("0123456789abcdef", rune(value[i])) {
			return value[:i] + pick(g.random, []string{"[0-9]", "[a-z]", "[!0-4]", "[0-9a-f]", "[[:digit:]]"}) + value[i+1:]
		}
	case 5:
		return "other|" + value
	case 6:
		return value[:at()] + "*|" + pick(g.random, []string{"tty*", "zram?", "*"}) + value[at():]
	case 7:
		return value + "x"
	}
	return value
}

// regexAgrees reports whether a pattern is a plain text, or no value matches it as a
// regular expression without also being the text.
func (g *generator) regexAgrees(pattern string, values []string) bool {
	if !strings.ContainsAny(pattern, `*?[]().+^$|{}\`) {
		return true
	}
	expression, err := regexp.Compile(`(?s)\A(?:` + pattern + `)\z`)
	if err != nil {
		return true
	}
	alternatives := strings.Split(pattern, "|")
	if slices.ContainsFunc(values, func(v string) bool { return expression.MatchString(v) && !slices.Contains(alternatives, v) }) {
		g.ambiguous++
		return false
	}
	return true
}

func (g *generator) attributeValues(name string) (values []string) {
	for _, device := range g.snapshot.devices {
		if value, found := device.Attr(name); found {
			values = append(values, value)
		}
	}
	return values
}

func (g *generator) environmentValues(name string) (values []string) {
	for _, devPath := range g.devPaths {
		if value, found := g.snapshot.device(devPath).Env(name); found {
			values = append(values, value)
		}
	}
	return values
}

// compare compares the rules that udevd has found to match with ours.
func (g *generator) compare(texts []string) {
	fresh := g.tree.snapshot()
	matched, differ, unseen, reported := 0, 0, 0, -1
	theirs := make([]map[string]bool, len(g.devPaths))
	for i, devPath := range g.devPaths {
		data := fresh.device(devPath).data()
		if _, err := os.Stat(filepath.Join(fresh.run, "data", fresh.device(devPath).recordName())); err != nil {
			unseen++ // such as the machine's disk, which udevd may not open
			continue
		}
		theirs[i] = map[string]bool{}
		for name := range data.properties {
			if number, ok := strings.CutPrefix(name, "R"); ok {
				theirs[i][number] = true
			}
		}
	}
	began := time.Now()
	for start := 0; start < len(texts); start += rulesPerParse {
		for j, rule := range parse(g.t, rules(texts[start:start+rulesPerParse]...)).Rules {
			for i, devPath := range g.devPaths {
				if theirs[i] == nil {
					continue
				}
				ours := rule.Matches(details.Device(fresh.device(devPath))) == details.Yes
				if ours {
					matched++
				}
				if ours == theirs[i][strconv.Itoa(start+j)] {
					continue
				}
				if differ++; differ <= 200 && reported != start+j {
					reported = start + j
					g.t.Errorf("rule %d, %s\n  device %s: we match: %t, udevd: %t", start+j, texts[start+j], devPath, ours, !ours)
				}
			}
		}
	}
	g.t.Logf("%d rules and %d devices: %d matches, %d differ; %d values have another meaning as regular expressions; "+
		"%d devices without an entry; our part took %v", len(texts), len(g.devPaths), matched, differ, g.ambiguous, unseen, time.Since(began))
	if matched < len(texts) {
		g.t.Errorf("%d matches are too few to compare", matched)
	}
	if unseen > len(g.devPaths)/10 {
		g.t.Errorf("udevd has not seen %d of %d devices", unseen, len(g.devPaths))
	}
}
