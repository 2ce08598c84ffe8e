package hostpaths

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

const (
	anyHandler    = "*"
	networkSuffix = "@network"
	readOnly      = ":ro"
)

// Rules permit directories to handlers. The zero value permits nothing.
type Rules []rule

type rule struct {
	Handler        // its name may be anyHandler
	dir     string // "" permits nothing
	// readOnly means that mounts must be read-only.
	readOnly bool
}

// Parse parses rules of the form HANDLER=DIRECTORY, HANDLER=DIRECTORY:ro, or HANDLER= for
// nothing. HANDLER is a name, or * for all handlers on Unix sockets; with the suffix
// @network, it is that of a handler on the network.
func Parse(values []string) (Rules, error) {
	var rules Rules
	for _, value := range values {
		handler, dir, found := strings.Cut(strings.TrimSpace(value), "=")
		parsed := rule{}
		parsed.Name, parsed.Network = strings.CutSuffix(handler, networkSuffix)
		parsed.dir, parsed.readOnly = strings.CutSuffix(dir, readOnly)
		if !found || parsed.Name == "" || dir != "" && clean(parsed.dir) == "" || parsed.Network && parsed.Name == anyHandler {
			return nil, fmt.Errorf("%q: want HANDLER=DIRECTORY, such as udev=/dev, with an absolute directory, or HANDLER= for none", value)
		}
		parsed.dir = clean(parsed.dir)
		rules = append(rules, parsed)
	}
	return rules, nil
}

// WithDefaults returns the rules, and those of the defaults whose handler has no rule yet.
func (r Rules) WithDefaults(defaults Rules) Rules {
	return append(slices.Clone(r), slices.DeleteFunc(slices.Clone(defaults), func(usual rule) bool {
		return slices.ContainsFunc(r, func(r rule) bool { return r.concerns(usual.Handler) })
	})...)
}

// permits reports whether a handler may use a path, which is clean.
func (r Rules) permits(handler Handler, file string, writable bool) bool {
	return slices.ContainsFunc(r, func(r rule) bool {
		return r.concerns(handler) && r.dir != "" && within(file, r.dir) && !(r.readOnly && writable)
	})
}

func (r rule) concerns(handler Handler) bool {
	return (r.Name == handler.Name || r.Name == anyHandler) && r.Network == handler.Network
}

func within(file, dir string) bool {
	return file == dir || strings.HasPrefix(file, strings.TrimSuffix(dir, "/")+"/")
}

// clean returns an absolute path in its shortest form, or "" if it is not absolute or
// has a component "..".
func clean(file string) string {
	if !path.IsAbs(file) || slices.Contains(strings.Split(file, "/"), "..") || strings.ContainsRune(file, 0) {
		return ""
	}
	return path.Clean(file)
}
