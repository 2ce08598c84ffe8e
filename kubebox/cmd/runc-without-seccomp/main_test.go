package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestUnfilterRemovesOnlyTheFilter(t *testing.T) {
	got, err := unfilter([]byte(`{"process":{"args":["a"]},"linux":{"seccomp":{"defaultAction":"X"},"namespaces":[1]}}`))
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"linux":{"namespaces":[1]},"process":{"args":["a"]}}`; string(got) != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

func TestBundleIsFoundInEveryFlagForm(t *testing.T) {
	for _, args := range [][]string{
		{"runc", "create", "--bundle", "/b", "id"}, {"runc", "create", "-b", "/b"}, {"runc", "create", "--bundle=/b"},
	} {
		if got := bundle(args); got != "/b" {
			t.Errorf("%q: got %s", args, got)
		}
	}
}

func TestInvalidConfigurationIsRejected(t *testing.T) {
	for _, content := range []string{"", "[]", `{"linux": []}`} {
		dir := t.TempDir()
		file := filepath.Join(dir, "config.json")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		// Without the error, this would execute runc-plain, which does not exist.
		err := run([]string{"runc", "create", "--bundle", dir, "id"})
		if err == nil || !strings.HasPrefix(err.Error(), file+": ") {
			t.Errorf("%q: got %v", content, err)
		}
		if left, err := os.ReadFile(file); err != nil || string(left) != content {
			t.Errorf("%q was changed to %q, %v", content, left, err)
		}
	}
	if err := run([]string{"runc", "run", "--bundle", t.TempDir()}); err == nil || !strings.Contains(err.Error(), "config.json") {
		t.Errorf("without a configuration: %v", err)
	}
}

func TestOtherSystemsHaveNoFilter(t *testing.T) {
	const config = `{"windows": {}}`
	if got, err := unfilter([]byte(config)); err != nil || string(got) != config {
		t.Errorf("got %s, %v", got, err)
	}
}
