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

func (g goBuild) args() []string {
	args := []string{"build", "-v", "-trimpath", "-buildvcs=false", "-ldflags=-s -w " + g.ldflags, "-o", g.out}
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
	cmd.Env = append(cmd.Env, g.env...)
	return cmd
}

// compile runs go build and reports progress regularly.
func (b *builder) compile(ctx context.Context, title string, g goBuild) error {
	if err := os.MkdirAll(filepath.Dir(g.out), 0o755); err != nil {
		return err
	}
	var total, compiled, downloaded atomic.Int64
	began := time.Now()
	stop := b.repeat(func() string {
		state := fmt.Sprintf("%s: %.0fs, %d", title, time.Since(began).Seconds(), compiled.Load())
		if all := total.Load(); all > 0 {
			state += fmt.Sprintf(" of %d", all)
		}
		state += " packages compiled (some may be cached)"
		if n := downloaded.Load(); n > 0 {
			state += fmt.Sprintf(", %d modules downloaded", n)
		}
		return state
	})
	defer stop()

	list := []string{"list", "-deps"}
	if g.tags != "" {
		list = append(list, "-tags="+g.tags)
	}
	packages := g.command(ctx, append(list, g.targets...)...)
	packages.Stderr = &lines{each: func(string) { downloaded.Add(1) }}
	if out, err := packages.Output(); err == nil { // otherwise go build reports the error
		total.Store(int64(bytes.Count(out, []byte("\n"))))
	}

	var output []string
	cmd := g.command(ctx, g.args()...)
	cmd.Stderr = &lines{each: func(line string) {
		switch {
		case strings.HasPrefix(line, "go: downloading "):
			downloaded.Add(1)
		case strings.ContainsAny(line, " #:\t"):
			output = append(output, line)
		default:
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
