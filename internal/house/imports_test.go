package house

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "akri.sh/akri"

// mayImport lists, for each top-level directory with Go code, the others that it
// may import. The list is in layers: a directory imports only what is above it.
var mayImport = []struct {
	folder string
	others []string
}{
	{"api", nil},
	{"internal", []string{"api"}},
	{"config", nil},
	{"discovery", []string{"internal"}},
	{"templating", []string{"api", "internal"}},
	{"agent", []string{"api", "discovery", "internal"}},
	{"controller", []string{"api", "templating", "internal"}},
	{"webhook", []string{"api", "templating", "controller", "internal"}},
	{"cmd", []string{"api", "config", "discovery", "templating", "agent", "controller", "webhook", "internal"}},
	{"examples", []string{"discovery"}},
	// Nested modules.
	{"tools", nil},
	{"kubebox", nil},
	{"charts", []string{"kubebox"}},
	{"release", []string{"kubebox"}},
	{"e2e", []string{"kubebox", "charts", "release"}},
	{"bench", []string{"internal", "discovery", "kubebox"}},
}

// testOnly lists packages that only tests may import, and bench, which is not shipped.
var testOnly = []string{
	"internal/apitest", "internal/cputime", "internal/kubelettest", "internal/metricsdoc", "internal/original", "discovery/handlertest",
}

// apart lists directories that must not import each other.
var apart = [][2]string{
	{"agent/discover", "agent/serve"},
	{"cmd/akri-agent", "cmd/akri-controller"},
}

// edge is an import of a package of this module, by code that is not a test.
type edge struct{ file, from, to string }

func edges(r *repository) []edge {
	var all []edge
	for _, file := range r.code {
		if file.test {
			continue
		}
		for _, spec := range file.syntax.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			if to, ours := strings.CutPrefix(name, module+"/"); ours {
				all = append(all, edge{file.path, file.dir(), to})
			}
		}
	}
	return all
}

// within reports whether dir is folder or a directory below it.
func within(dir, folder string) bool { return dir == folder || strings.HasPrefix(dir, folder+"/") }

func topLevel(dir string) string {
	top, _, _ := strings.Cut(dir, "/")
	return top
}

// TestLayers checks that imports run from cmd towards api, never back.
func TestLayers(t *testing.T) {
	r := repositoryOf(t)
	allowed := map[string][]string{}
	var order []string
	for _, layer := range mayImport {
		for _, other := range layer.others {
			if !slices.Contains(order, other) {
				t.Errorf("mayImport: %s may not import %s, which is not above it", layer.folder, other)
			}
		}
		order = append(order, layer.folder)
		allowed[layer.folder] = layer.others
	}
	found := map[string]bool{}
	for _, file := range r.code {
		found[topLevel(file.dir())] = true
	}
	for folder := range found {
		if _, ok := allowed[folder]; !ok {
			t.Errorf("%s: a top-level directory without a layer: add it to mayImport", folder)
		}
	}
	for _, folder := range order {
		if !found[folder] {
			t.Errorf("mayImport: there is no Go code in %s: remove it", folder)
		}
	}
	for _, e := range edges(r) {
		from, to := topLevel(e.from), topLevel(e.to)
		if from != to && !slices.Contains(allowed[from], to) {
			t.Errorf("%s imports %s/%s: %s may import only %v: move what both need into a lower layer", e.file, module, e.to, from, allowed[from])
		}
	}
}

func TestTestOnly(t *testing.T) {
	r := repositoryOf(t)
	for _, folder := range testOnly {
		if !r.dirs[folder] {
			t.Errorf("testOnly: there is no %s: remove it", folder)
		}
	}
	for _, e := range edges(r) {
		if within(e.from, "bench") {
			continue
		}
		for _, folder := range testOnly {
			if within(e.to, folder) && !slices.ContainsFunc(testOnly, func(other string) bool { return within(e.from, other) }) {
				t.Errorf("%s imports %s, which is for tests only: import it from a _test.go file", e.file, e.to)
			}
		}
	}
}

func TestApart(t *testing.T) {
	r := repositoryOf(t)
	for _, pair := range apart {
		for _, folder := range pair {
			if !r.dirs[folder] {
				t.Errorf("apart: there is no %s: remove the pair", folder)
			}
		}
		for _, e := range edges(r) {
			if within(e.from, pair[0]) && within(e.to, pair[1]) || within(e.from, pair[1]) && within(e.to, pair[0]) {
				t.Errorf("%s imports %s: %s and %s must not know each other: pass it through the package that imports both",
					e.file, e.to, pair[0], pair[1])
			}
		}
	}
}

// TestNoCycles checks that directories do not import each other in a cycle, at any
// depth. Go forbids cycles only between packages. A directory's own package counts
// as one of its children: it may import its sub-packages or be imported by them,
// not both.
func TestNoCycles(t *testing.T) {
	r := repositoryOf(t)
	all := edges(r)
	for _, dir := range slices.Sorted(maps.Keys(r.dirs)) {
		arrows, witness := map[string][]string{}, map[string]string{}
		for _, e := range all {
			from, fromHere := childOf(dir, e.from)
			to, toHere := childOf(dir, e.to)
			if fromHere && toHere && from != to {
				arrows[from] = append(arrows[from], to)
				witness[from+" -> "+to] = e.file
			}
		}
		for _, cycle := range cycles(arrows) {
			var steps []string
			for i, from := range cycle {
				to := cycle[(i+1)%len(cycle)]
				steps = append(steps, from+" -> "+to+" ("+witness[from+" -> "+to]+")")
			}
			t.Errorf("%s: an import cycle of directories: %s: move what both need into a lower layer", dir, strings.Join(steps, ", "))
		}
	}
}

// childOf returns the child of dir that holds other; dir's own package is ".".
func childOf(dir, other string) (child string, ok bool) {
	if other == dir {
		return ".", true
	}
	rest := other
	if dir != "." {
		if rest, ok = strings.CutPrefix(other, dir+"/"); !ok {
			return "", false
		}
	}
	return path.Clean(topLevel(rest)), true
}

// cycles returns a cycle for each arrow that closes one in a walk through the
// graph, in a fixed order.
func cycles(arrows map[string][]string) [][]string {
	var found [][]string
	done := map[string]bool{}
	var walk func(node string, trail []string)
	walk = func(node string, trail []string) {
		if i := slices.Index(trail, node); i >= 0 {
			found = append(found, slices.Clone(trail[i:]))
			return
		}
		if done[node] {
			return
		}
		targets := slices.Compact(slices.Sorted(slices.Values(arrows[node])))
		for _, to := range targets {
			walk(to, append(trail, node))
		}
		done[node] = true
	}
	for _, node := range slices.Sorted(maps.Keys(arrows)) {
		walk(node, nil)
	}
	return found
}
