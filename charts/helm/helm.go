package helm

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/kube"
	"helm.sh/helm/v4/pkg/release"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"akri.sh/akri/charts"
)

// Values are a chart's values, as read from YAML or JSON.
type Values = map[string]any

// A Release is an installation of the chart in a namespace.
type Release struct {
	Name      string // usually akri
	Namespace string // usually akri-system

	// Kubeconfig is the file with the cluster's address and credentials. Render does not
	// need it.
	Kubeconfig string
	// Chart is what is installed; the embedded chart if nil.
	Chart *chart.Chart
	// Timeout bounds how long objects are waited for until they are ready; 0 does not wait.
	Timeout time.Duration
	// TakeOwnership takes over objects that no release of Helm has created, such as the
	// CustomResourceDefinitions of Akri's own chart.
	TakeOwnership bool
	// HookOutput is where the logs of hooks go that Helm prints; nil discards them.
	HookOutput io.Writer
}

// Load returns the embedded chart with the versions of a release, such as v1.2.3; with
// those of the source if version is empty.
func Load(version string) (*chart.Chart, error) {
	var files []*archive.BufferedFile
	err := fs.WalkDir(charts.Akri, "akri", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(charts.Akri, name)
		files = append(files, &archive.BufferedFile{Name: name[len("akri/"):], Data: data, ModTime: released})
		return err
	})
	if err != nil {
		return nil, err
	}
	loaded, err := loader.LoadFiles(files)
	if err != nil {
		return nil, fmt.Errorf("chart akri: %w", err)
	}
	if version != "" {
		SetVersion(loaded, version)
	}
	return loaded, nil
}

// Render returns the manifests of the release, as YAML documents, without a cluster.
func (r *Release) Render(values Values) (string, error) {
	rendered, err := r.dryRun(values)
	if err != nil {
		return "", err
	}
	return rendered.Manifest, nil
}

// Notes returns what Helm prints after an installation.
func (r *Release) Notes(values Values) (string, error) {
	rendered, err := r.dryRun(values)
	if err != nil {
		return "", err
	}
	return rendered.Info.Notes, nil
}

// Hooks returns the manifests that only run at an event of the release, such as its test.
func (r *Release) Hooks(values Values) ([]*releasev1.Hook, error) {
	rendered, err := r.dryRun(values)
	if err != nil {
		return nil, err
	}
	return rendered.Hooks, nil
}

func (r *Release) dryRun(values Values) (*releasev1.Release, error) {
	install := action.NewInstall(action.NewConfiguration())
	install.ReleaseName, install.Namespace = r.Name, r.Namespace
	install.DryRunStrategy = action.DryRunClient
	install.KubeVersion = &common.KubeVersion{Version: "v1.37.0", Major: "1", Minor: "37"}
	c, err := r.chart()
	if err != nil {
		return nil, err
	}
	return releaseOf(install.Run(c, values))
}

// Install creates the release, and its namespace if it does not exist.
func (r *Release) Install(ctx context.Context, values Values) (*releasev1.Release, error) {
	cfg, c, err := r.prepare()
	if err != nil {
		return nil, err
	}
	install := action.NewInstall(cfg)
	install.ReleaseName, install.Namespace, install.CreateNamespace = r.Name, r.Namespace, true
	install.TakeOwnership = r.TakeOwnership
	install.WaitStrategy, install.Timeout = r.wait()
	return releaseOf(install.RunWithContext(ctx, c, values))
}

// Upgrade changes the release to the chart and exactly these values.
func (r *Release) Upgrade(ctx context.Context, values Values) (*releasev1.Release, error) {
	cfg, c, err := r.prepare()
	if err != nil {
		return nil, err
	}
	upgrade := action.NewUpgrade(cfg)
	upgrade.Namespace, upgrade.ResetValues = r.Namespace, true
	upgrade.TakeOwnership = r.TakeOwnership
	upgrade.WaitStrategy, upgrade.Timeout = r.wait()
	return releaseOf(upgrade.RunWithContext(ctx, r.Name, c, values))
}

// Rollback returns to a revision of the release; to the one before the current with 0.
func (r *Release) Rollback(revision int) error {
	cfg, err := r.configuration()
	if err != nil {
		return err
	}
	rollback := action.NewRollback(cfg)
	rollback.Version = revision
	rollback.WaitStrategy, rollback.Timeout = r.wait()
	return rollback.Run(r.Name)
}

// Uninstall deletes the release's objects, except those that are to be kept.
func (r *Release) Uninstall() error {
	cfg, err := r.configuration()
	if err != nil {
		return err
	}
	uninstall := action.NewUninstall(cfg)
	uninstall.WaitStrategy, uninstall.Timeout = r.wait()
	_, err = uninstall.Run(r.Name)
	return err
}

// Test runs the release's tests and writes their logs to output.
func (r *Release) Test(ctx context.Context, output io.Writer) error {
	cfg, err := r.configuration()
	if err != nil {
		return err
	}
	test := action.NewReleaseTesting(cfg)
	test.Namespace, test.Timeout = r.Namespace, r.Timeout
	tested, shutdown, err := test.Run(r.Name)
	if shutdown != nil {
		defer func() { _ = shutdown() }()
	}
	if tested == nil {
		return err
	}
	rel, assertErr := releaseOf(tested, nil)
	if assertErr != nil {
		return assertErr
	}
	if logErr := test.GetPodLogs(output, rel); logErr != nil && err == nil {
		err = logErr
	}
	return err
}

func (r *Release) wait() (kube.WaitStrategy, time.Duration) {
	if r.Timeout == 0 {
		return kube.HookOnlyStrategy, time.Minute
	}
	return kube.StatusWatcherStrategy, r.Timeout
}

func (r *Release) chart() (*chart.Chart, error) {
	if r.Chart != nil {
		return r.Chart, nil
	}
	return Load("")
}

func (r *Release) prepare() (*action.Configuration, *chart.Chart, error) {
	c, err := r.chart()
	if err != nil {
		return nil, nil, err
	}
	cfg, err := r.configuration()
	return cfg, c, err
}

// The command helm uses the same field manager, so each can upgrade a release of the other.
func init() { kube.ManagedFieldsManager = "helm" }

// configuration connects to the cluster. Releases are stored there as Secrets.
func (r *Release) configuration() (*action.Configuration, error) {
	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig, flags.Namespace = &r.Kubeconfig, &r.Namespace
	cfg := action.NewConfiguration()
	if err := cfg.Init(flags, r.Namespace, "secret"); err != nil {
		return nil, fmt.Errorf("release %s: %w", r.Name, err)
	}
	if r.HookOutput != nil {
		cfg.SetHookOutputFunc(func(_, _, _ string) io.Writer { return r.HookOutput })
	}
	return cfg, nil
}

// releaseOf returns the release of the current API version.
func releaseOf(r release.Releaser, err error) (*releasev1.Release, error) {
	result, ok := r.(*releasev1.Release)
	if err == nil && !ok {
		err = fmt.Errorf("release: unexpected type %T", r)
	}
	return result, err
}
