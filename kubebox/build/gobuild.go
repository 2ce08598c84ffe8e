package build

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// goBuild is one invocation of go build.
type goBuild struct {
	dir     string   // directory of the module
	sources []string // additional directories with inputs
	out     string   // file, or directory if it ends in a slash
	tags    string
	ldflags string   // in addition to those that strip symbols
	env     []string // in addition to CGO_ENABLED=0
	targets []string
}

// gcflags omits debug information, which is an eighth of the compiler's work. The
// Makefile has the same flags, because they are part of Go's cache keys.
const gcflags = "all=-dwarf=false"

// The garbage collector of the Go compiler costs up to a fifth of its time. These values
// trade memory for it; the linker, which needs most, stays below the limit.
var collector = map[string]string{"GOGC": "300", "GOMEMLIMIT": "3GiB"}

func (g goBuild) args() []string {
	args := []string{"build", "-v", "-trimpath", "-gcflags=" + gcflags, "-buildvcs=false", "-ldflags=-s -w " + g.ldflags, "-o", g.out}
	if g.tags != "" {
		args = append(args, "-tags="+g.tags)
	}
	return append(args, g.targets...)
}

// inputs returns the inputs that the result depends on.
func (g goBuild) inputs() inputs {
	text := append([]string{g.tags, g.ldflags}, g.targets...)
	return inputs{dirs: append([]string{g.dir}, g.sources...), text: append(text, g.env...)}
}

func (g goBuild) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = g.dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	for name, value := range collector {
		if os.Getenv(name) == "" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	cmd.Env = append(cmd.Env, g.env...)
	return cmd
}

// list returns the command that lists all packages to compile, after it has downloaded
// the modules that are missing.
func (g goBuild) list(ctx context.Context) *exec.Cmd {
	args := []string{"list", "-deps"}
	if g.tags != "" {
		args = append(args, "-tags="+g.tags)
	}
	return g.command(ctx, append(args, g.targets...)...)
}

// fetch downloads the modules that are missing.
func (g goBuild) fetch(ctx context.Context) error {
	if out, err := g.list(ctx).CombinedOutput(); err != nil {
		return fmt.Errorf("downloading modules for %s: %w: %s", g.dir, err, bytes.TrimSpace(out))
	}
	return nil
}

// compile runs go build and reports progress regularly.
func (b *builder) compile(ctx context.Context, title string, g goBuild) error {
	if err := os.MkdirAll(filepath.Dir(g.out), 0o755); err != nil {
		return err
	}
	var total, compiled atomic.Int64
	began := time.Now()
	stop := b.repeat(func() string {
		state := fmt.Sprintf("%s: %.0fs, %d", title, time.Since(began).Seconds(), compiled.Load())
		if all := total.Load(); all > 0 {
			state += fmt.Sprintf(" of %d", all)
		}
		return state + " packages compiled (some may be cached)"
	})
	defer stop()

	if out, err := g.list(ctx).Output(); err == nil { // otherwise go build reports the error
		total.Store(int64(bytes.Count(out, []byte("\n"))))
	}

	var output []string
	cmd := g.command(ctx, g.args()...)
	cmd.Stderr = &lines{each: func(line string) {
		if strings.ContainsAny(line, " #:\t") {
			output = append(output, line)
		} else {
			compiled.Add(1) // -v prints the name of each package
		}
	}}
	if err := cmd.Run(); err != nil {
		output = output[max(0, len(output)-40):]
		return fmt.Errorf("go build in %s: %w\n%s", g.dir, err, strings.Join(output, "\n"))
	}
	return nil
}

// lines is an io.Writer that calls a function for each line.
type lines struct {
	each func(string)
	rest []byte
}

func (l *lines) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		advance, line, _ := bufio.ScanLines(l.rest, false)
		if advance == 0 {
			return len(p), nil
		}
		l.each(string(line))
		l.rest = l.rest[advance:]
	}
}
