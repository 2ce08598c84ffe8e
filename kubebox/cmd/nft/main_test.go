package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// mainVariable makes the test's executable run main.
const mainVariable = "AKRI_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(mainVariable) != "" {
		main()
	}
	os.Exit(m.Run())
}

func TestMissingNFTIsReportedWithTheRemedy(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), mainVariable+"=1")
	out, err := cmd.CombinedOutput() // there is no nftables/nft next to a test's executable
	const cause, remedy = "/nftables/nft: no such file or directory: ", "run make kubernetes, or install nftables\n"
	if err == nil || !strings.HasPrefix(string(out), "nft: run ") || !strings.HasSuffix(string(out), cause+remedy) {
		t.Errorf("%v: %s", err, out)
	}
}

func TestLibrariesComeFirst(t *testing.T) {
	got := withLibraries([]string{"PATH=/bin", "LD_LIBRARY_PATH=/opt/lib"}, "/k8s/nftables")
	if want := []string{"PATH=/bin", "LD_LIBRARY_PATH=/k8s/nftables:/opt/lib"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	// An empty element would be the working directory.
	got = withLibraries([]string{"LD_LIBRARY_PATH="}, "/k8s/nftables")
	if want := []string{"LD_LIBRARY_PATH=/k8s/nftables"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
