package main

import (
	"slices"
	"testing"
)

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
