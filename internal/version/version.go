package version

import (
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// version is set by builds: -ldflags "-X akri.sh/akri/internal/version.version=v1.2.3".
var version string

// commit is set by builds that do not let Go record it.
var commit string

// unknown is the version of a program that was built without a version and outside a
// repository.
const unknown = "v0.0.0-unknown"

// commitInVersion matches the abbreviated commit in a version from git describe. Go does
// not record the commit of all checkouts.
var commitInVersion = regexp.MustCompile(`-g([0-9a-f]{7,40})(?:-dirty)?$`)

// Info describes the build of a program.
type Info struct {
	// Version is valid according to Semantic Versioning, with a leading v.
	Version string `json:"version"`
	// Commit is the commit that the program was built from, perhaps abbreviated, or
	// "unknown".
	Commit string `json:"commit"`
	// Go is the version of the Go toolchain, and Platform such as linux/amd64.
	Go       string `json:"goVersion"`
	Platform string `json:"platform"`
}

// Get returns the build of this program.
func Get() Info {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		build = &debug.BuildInfo{GoVersion: runtime.Version()}
	}
	return infoOf(version, commit, build)
}

// infoOf combines the version and the commit that the build set with what Go recorded about it.
func infoOf(set, commit string, build *debug.BuildInfo) Info {
	info := Info{Version: set, Commit: "unknown", Go: build.GoVersion, Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if !Valid(info.Version) {
		info.Version = build.Main.Version // a pseudo-version, if Go found the repository
	}
	if !Valid(info.Version) {
		info.Version = unknown
	}
	if match := commitInVersion.FindStringSubmatch(info.Version); match != nil {
		info.Commit = match[1]
	}
	for _, setting := range build.Settings {
		if setting.Key == "vcs.revision" {
			info.Commit = setting.Value
		}
	}
	if commit != "" {
		info.Commit = commit
	}
	return info
}

// Valid reports whether a version is valid according to Semantic Versioning, with a
// leading v.
func Valid(text string) bool {
	number, found := strings.CutPrefix(text, "v")
	_, err := semver.StrictNewVersion(number)
	return found && err == nil
}

// String returns the version of this program.
func String() string { return Get().Version }

// Text returns the version of this program and how it was built.
func Text() string {
	info := Get()
	return fmt.Sprintf("%s (commit %s, %s, %s)", info.Version, info.Commit, info.Go, info.Platform)
}

// Line returns what a program prints for --version. It is cobra's default: a template
// would add a quarter to the size of a program, because the linker then keeps all methods.
func Line(program string) string { return program + " version " + Text() }
