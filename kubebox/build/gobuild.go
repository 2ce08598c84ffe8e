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

// goBuild is one call of go build.
type goBuild struct {
	dir     string   // of the module
	sources []string // folders of the module that matter; nil: its root
	out     string   // file, or folder if it ends in a slash
	tags    string
	ldflags string   // beside those that leave out symbols
	env     []string // beside CGO_ENABLED=0
	targets []string
}

func (g goBuild) args() []string {
	args := []string{"build", "-v", "-trimpath", "-buildvcs=false", "-ldflags=-s -w " + g.ldflags, "-o", g.out}
	if g.tags != "" {
		args = append(args, "-tags="+g.tags)
	}
	return append(args, g.targets...)
}

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

// compile runs go build and tells from time to time how far it is.
func (b *builder) compile(ctx context.Context, what string, g goBuild) error {
	if err := os.MkdirAll(filepath.Dir(g.out), 0o755); err != nil {
		return err
	}
	var total, compiled, fetched atomic.Int64
	began := time.Now()
	stop := b.repeat(func() string {
		state := fmt.Sprintf("%s: %.0fs, %d", what, time.Since(began).Seconds(), compiled.Load())
		if all := total.Load(); all > 0 {
			state += fmt.Sprintf(" of %d", all)
		}
		state += " packages compiled, some may need no compiling"
		if n := fetched.Load(); n > 0 {
			state += fmt.Sprintf(", %d modules fetched", n)
		}
		return state
	})
	defer stop()

	list := []string{"list", "-deps"}
	if g.tags != "" {
		list = append(list, "-tags="+g.tags)
	}
	packages := g.command(ctx, append(list, g.targets...)...)
	packages.Stderr = &lines{each: func(string) { fetched.Add(1) }}
	if out, err := packages.Output(); err == nil { // else go build says what is wrong
		total.Store(int64(bytes.Count(out, []byte("\n"))))
	}

	var complaint []string
	cmd := g.command(ctx, g.args()...)
	cmd.Stderr = &lines{each: func(line string) {
		switch {
		case strings.HasPrefix(line, "go: downloading "):
			fetched.Add(1)
		case strings.ContainsAny(line, " #:\t"):
			complaint = append(complaint, line)
		default:
			compiled.Add(1) // -v names each package
		}
	}}
	if err := cmd.Run(); err != nil {
		complaint = complaint[max(0, len(complaint)-40):]
		return fmt.Errorf("go build in %s: %w\n%s", g.dir, err, strings.Join(complaint, "\n"))
	}
	return nil
}

// lines calls a function for each line written.
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
