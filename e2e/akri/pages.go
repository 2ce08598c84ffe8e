package akri

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

var (
	section = regexp.MustCompile(`(?m)^##+ `)
	heading = regexp.MustCompile(`^.*`)
)

// Blocks returns the blocks of code in a language, such as sh, on a page of docs/, by
// heading.
func Blocks(root, page, language string) (map[string][]string, error) {
	text, err := os.ReadFile(filepath.Join(root, "docs", page))
	if err != nil {
		return nil, err
	}
	block := regexp.MustCompile("(?ms)^```" + language + "\n(.*?)^```$")
	blocks := map[string][]string{}
	for _, part := range section.Split(string(text), -1) {
		name := heading.FindString(part)
		for _, match := range block.FindAllStringSubmatch(part, -1) {
			blocks[name] = append(blocks[name], match[1])
		}
	}
	return blocks, nil
}

// BuildHelm builds the helm that go.mod names into bin/, with the same settings as tests that
// use it as a library: compiling it takes a minute, so it is done once.
func BuildHelm(ctx context.Context, root string) error {
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(root, "bin")+"/",
		"helm.sh/helm/v4/cmd/helm")
	command.Dir = filepath.Join(root, "e2e") // whose go.mod has helm as a tool
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("build helm: %w", err)
	}
	return nil
}

// Shell runs the commands of pages.
type Shell struct {
	// Dir is where they run, Path is their PATH, and Kubeconfig that of the cluster.
	Dir, Path, Kubeconfig string
}

// Run runs commands in one shell, which stops at the first that fails, and returns their
// output. It fails the test on an error.
func (s Shell) Run(t testing.TB, commands string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "sh", "-euxc", commands)
	command.Dir = s.Dir
	command.Env = append(os.Environ(), "KUBECONFIG="+s.Kubeconfig, "PATH="+s.Path)
	var out, trace bytes.Buffer
	command.Stdout, command.Stderr = &out, &trace
	err := command.Run()
	t.Logf("%s\n%s", trace.String(), out.String())
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}
