package helm_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"akri.sh/akri/charts/helm"
)

// writeManifests writes the files of a release into a directory that is removed after the test.
func writeManifests(t *testing.T, registry string) []string {
	t.Helper()
	config, err := filepath.Abs("../../config")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll("../../bin", 0o755); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("../../bin", "manifests-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if dir, err = filepath.Abs(dir); err != nil {
		t.Fatal(err)
	}
	files, err := helm.Manifests(config, dir, "v1.2.3", registry)
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); !slices.Equal(left, files) {
		t.Errorf("the directory has %q, want %q", left, files)
	}
	return files
}

// TestManifests applies the files of two handlers, as somebody without Helm does: the second adds its handler to what the
// first has installed. All images are those of the release.
func TestManifests(t *testing.T) {
	config := apiServer(t)
	files := writeManifests(t, "registry.example.com/akri")
	kubectl := func(arguments ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), "../../bin/k8s/kubectl", append(arguments, "--kubeconfig="+kubeconfig(t, config))...)
		output, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("kubectl %q: %v: %s", arguments, err, output)
		}
		return string(output)
	}
	for _, handler := range []string{"udev", "debug-echo"} {
		i := slices.IndexFunc(files, func(file string) bool { return filepath.Base(file) == "install-"+handler+".yaml" })
		kubectl("apply", "--server-side", "--force-conflicts", "--filename="+files[i]) // the definitions are there
	}
	workloads := kubectl("get", "daemonsets,deployments", "--namespace=akri-system", "--output=name")
	for _, want := range []string{"akri-agent", "akri-controller", "akri-webhook", "akri-udev-discovery", "akri-debug-echo-discovery"} {
		if !strings.Contains(workloads, "/"+want+"\n") {
			t.Errorf("no %s in\n%s", want, workloads)
		}
	}
	images := kubectl("get", "daemonsets,deployments", "--namespace=akri-system",
		"--output=jsonpath={range .items[*]}{.spec.template.spec.containers[*].image}{'\\n'}{end}")
	for image := range strings.FieldsSeq(images) {
		if !strings.HasPrefix(image, "registry.example.com/akri/") || !strings.HasSuffix(image, ":v1.2.3") {
			t.Errorf("image %s", image)
		}
	}
}

// TestManifestsOfEveryHandler compares the files with what config/ has.
func TestManifestsOfEveryHandler(t *testing.T) {
	found, err := filepath.Glob("../../config/*/handler.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var handlers []string
	for _, file := range found {
		if handler := filepath.Base(filepath.Dir(file)); handler != "site" { // a handler for the whole cluster, to adapt
			handlers = append(handlers, handler)
		}
	}
	if !slices.Equal(handlers, helm.Handlers) {
		t.Errorf("config/ has the handlers %q, and the package %q", handlers, helm.Handlers)
	}
	files := writeManifests(t, "")
	for i, handler := range helm.Handlers {
		all := objects(t, read(t, files[i]))
		if all["DaemonSet akri-system/akri-"+handler+"-discovery"] == nil || all["Namespace /akri-system"] == nil {
			t.Errorf("%s: %q", files[i], keysOf(all))
		}
	}
	if _, err := helm.Manifests("../../config", t.TempDir(), "v1.2.3", "https://a"); err == nil {
		t.Error("accepted a URL as the registry")
	}
}
