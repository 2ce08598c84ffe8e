package build

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
)

const kubernetesModule = "k8s.io/kubernetes"

// goMod returns the go.mod of a module that compiles a version of Kubernetes. Kubernetes'
// own go.mod takes its staging modules from its source tree; here each is the published
// one of the same release, v0.MINOR.PATCH.
func goMod(version string, upstream []byte) ([]byte, error) {
	from, err := modfile.Parse("go.mod", upstream, nil)
	if err != nil {
		return nil, fmt.Errorf("go.mod of %s %s: %w", kubernetesModule, version, err)
	}
	if from.Go == nil {
		return nil, fmt.Errorf("go.mod of %s %s: no go version", kubernetesModule, version)
	}
	to := new(modfile.File)
	staging := "v0." + strings.TrimPrefix(version, "v1.")
	steps := []error{
		to.AddModuleStmt("akri.sh/akri/kubebox/kubernetes"),
		to.AddGoStmt(from.Go.Version),
		to.AddRequire(kubernetesModule, version),
	}
	for _, setting := range from.Godebug {
		steps = append(steps, to.AddGodebug(setting.Key, setting.Value))
	}
	found := 0
	for _, replaced := range from.Replace {
		if strings.HasPrefix(replaced.New.Path, "./staging/") {
			steps = append(steps, to.AddReplace(replaced.Old.Path, "", replaced.Old.Path, staging))
			found++
		}
	}
	if found == 0 {
		return nil, fmt.Errorf("go.mod of %s %s: no staging modules", kubernetesModule, version)
	}
	for _, err := range steps {
		if err != nil {
			return nil, err
		}
	}
	to.Cleanup()
	return to.Format()
}

// generate writes a module like kubebox/kubernetes for another version into dir: the same
// main package, with the dependencies that this version was released with.
func (b *builder) generate(ctx context.Context, version, dir string) error {
	source := filepath.Join(b.module, "kubernetes")
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	g := goBuild{dir: dir}
	cmd := g.command(ctx, "mod", "download", "-json", kubernetesModule+"@"+version)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var module struct{ GoMod, Error string }
	if jsonErr := json.Unmarshal(out, &module); jsonErr == nil && module.Error != "" {
		return fmt.Errorf("downloading %s: %s: choose another patch release: go list -m -versions %s shows some of them",
			kubernetesModule, module.Error, kubernetesModule)
	}
	if err != nil {
		return fmt.Errorf("downloading %s %s: %w: %s", kubernetesModule, version, err, bytes.TrimSpace(stderr.Bytes()))
	}
	upstream, err := os.ReadFile(module.GoMod)
	if err != nil {
		return err
	}
	content, err := goMod(version, upstream)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), content, 0o644); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(source, "*.go"))
	if err != nil {
		return err
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), content, 0o644); err != nil {
			return err
		}
	}
	if out, err := g.command(ctx, "mod", "tidy").CombinedOutput(); err != nil {
		return fmt.Errorf("go mod tidy in %s: %w: %s", dir, err, bytes.TrimSpace(out))
	}
	return nil
}
