package hostpaths

import (
	"fmt"
	"regexp"
	"strings"

	"akri.sh/akri/agent/device"
	"akri.sh/akri/internal/text"
)

// maxShown bounds the bytes of a path in a message.
const maxShown = 128

// Handler is a discovery handler, as the rules see it.
type Handler struct {
	Name string
	// Network means that it listens on the network instead of a Unix socket of the node.
	Network bool
}

// pattern returns what a rule for the handler begins with.
func (h Handler) pattern() string {
	if h.Network {
		return h.Name + networkSuffix
	}
	return h.Name
}

// Policy permits device files and mounts. The zero value permits none.
type Policy struct {
	DeviceFiles, Mounts Rules
}

// Mount returns a mount with clean paths, or an error that names the path and the
// remedy.
func (p Policy) Mount(handler Handler, m device.Mount) (device.Mount, error) {
	cleaned := device.Mount{ContainerPath: clean(m.ContainerPath), HostPath: clean(m.HostPath), ReadOnly: m.ReadOnly}
	switch {
	case cleaned.HostPath == "":
		return m, invalid("mount", m.HostPath)
	case cleaned.ContainerPath == "":
		return m, invalid("mount at", m.ContainerPath)
	case !p.Mounts.permits(handler, cleaned.HostPath, !m.ReadOnly):
		return m, fmt.Errorf("mount of %q (read-only: %t): %s", text.Truncate(cleaned.HostPath, maxShown), m.ReadOnly,
			refusal("allow-mounts", handler, cleaned.HostPath, !m.ReadOnly))
	}
	return cleaned, nil
}

// DeviceFile returns a device file with clean paths, or an error that names the path
// and the remedy.
func (p Policy) DeviceFile(handler Handler, f device.File) (device.File, error) {
	cleaned := device.File{ContainerPath: clean(f.ContainerPath), HostPath: clean(f.HostPath), Permissions: f.Permissions}
	switch {
	case cleaned.HostPath == "":
		return f, invalid("device file", f.HostPath)
	case cleaned.ContainerPath == "":
		return f, invalid("device file at", f.ContainerPath)
	case strings.Trim(f.Permissions, "rwm") != "" || len(f.Permissions) > len("rwm"):
		return f, fmt.Errorf("device file %q: permissions %q: want a subset of rwm: this is a bug in the handler",
			text.Truncate(cleaned.HostPath, maxShown), text.Truncate(f.Permissions, maxShown))
	case !p.DeviceFiles.permits(handler, cleaned.HostPath, strings.Contains(f.Permissions, "w")):
		return f, fmt.Errorf("device file %q (%s): %s", text.Truncate(cleaned.HostPath, maxShown), f.Permissions,
			refusal("allow-device-files", handler, cleaned.HostPath, strings.Contains(f.Permissions, "w")))
	}
	return cleaned, nil
}

// plain matches paths that are safe to print as part of a flag: a handler must not be able to
// extend the flag, or the command that a person copies, by the characters of a path.
var plain = regexp.MustCompile(fmt.Sprintf(`^[\w/.:@+-]{1,%d}$`, maxShown))

// refusal says which flag permits a path to a handler.
func refusal(flag string, handler Handler, file string, writable bool) string {
	if !plain.MatchString(file) {
		file = "DIRECTORY"
	}
	if !writable {
		file += readOnly
	}
	return fmt.Sprintf("not permitted to this handler: if you trust it, add --%s=%s=%s to the agents' arguments (agent.args in the chart)",
		flag, handler.pattern(), file)
}

func invalid(what, file string) error {
	return fmt.Errorf("%s %q: want an absolute path without ..: this is a bug in the handler", what, text.Truncate(file, maxShown))
}
