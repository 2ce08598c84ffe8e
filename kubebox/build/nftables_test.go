package build

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// provideNFT runs the step nftables with a PATH, and returns its result and its log.
func provideNFT(t *testing.T, path string) (result, log string) {
	t.Helper()
	t.Setenv("PATH", path)
	var output strings.Builder
	b := &builder{progress: &progress{out: &output, began: time.Now()}, dir: t.TempDir(), module: ".."}
	if err := b.nftables().run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b.result("nft"), output.String()
}

func TestInstalledNFTIsUsed(t *testing.T) {
	installed := filepath.Join(t.TempDir(), "nft")
	if err := os.WriteFile(installed, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	result, _ := provideNFT(t, filepath.Dir(installed))
	if target, err := os.Readlink(result); err != nil || target != installed {
		t.Errorf("the result links to %q, want %q: %v", target, installed, err)
	}
}

func TestBuildGoesOnWithoutNFT(t *testing.T) {
	if _, err := os.Stat("/usr/sbin/nft"); err == nil {
		t.Skip("needs a machine without nft")
	}
	result, log := provideNFT(t, t.TempDir()) // without apt-get
	if _, err := os.Lstat(result); err == nil {
		t.Errorf("%s exists", result)
	}
	for _, remedy := range []string{"apt-get install nftables", "dnf install nftables"} {
		if !strings.Contains(log, remedy) {
			t.Errorf("the log lacks the remedy %q:\n%s", remedy, log)
		}
	}
}
