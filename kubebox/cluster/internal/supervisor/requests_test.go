package supervisor

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"akri.sh/akri/kubebox/cluster/internal/control"
	"akri.sh/akri/kubebox/cluster/internal/process"
)

var table = process.NewTable() // there can be only one per process

func assertError(t *testing.T, reason string, err error, want string) {
	t.Helper()
	if err == nil || err.Error() != want {
		t.Errorf("%s\n got %v\nwant %s", reason, err, want)
	}
}

// newSupervisor returns a supervisor that has started nothing, and a context that it
// ends.
func newSupervisor(t *testing.T) (*Supervisor, context.Context) {
	t.Helper()
	ctx, end := context.WithCancelCause(t.Context())
	t.Cleanup(func() { end(nil) })
	config := example
	config.Dir = t.TempDir()
	return &Supervisor{config: config, table: table, operator: &control.Operator{Table: table}, end: end}, ctx
}

// input returns a file to read content from.
func input(t *testing.T, content string) *os.File {
	t.Helper()
	near, far, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close() })
	if _, err := io.WriteString(far, content); err != nil {
		t.Fatal(err)
	}
	far.Close()
	return near
}

func TestMostNodesFitIntoTheAddressRanges(t *testing.T) {
	bridge, pods := netip.MustParsePrefix(bridgePrefix), netip.MustParsePrefix(podRanges)
	for i := range MaxNodes {
		address, err := netip.ParseAddr(NodeAddress(i))
		if err != nil || !bridge.Contains(address) || address == bridge.Addr() {
			t.Errorf("%s has the address %s, %v", NodeName(i), NodeAddress(i), err)
		}
		subnet, err := netip.ParsePrefix(podRange(i))
		if err != nil || !pods.Contains(subnet.Addr()) {
			t.Errorf("%s has the Pods %s, %v", NodeName(i), podRange(i), err)
		}
	}
	if MaxNodes != 100 {
		t.Errorf("MaxNodes is %d, but the documentation says 100", MaxNodes)
	}
}

func TestLifelineEndsTheCluster(t *testing.T) {
	for message, want := range map[string]error{
		"":  errStarterExited,
		"x": errStarterExited,
		"r": nil, // Release
	} {
		s, ctx := newSupervisor(t)
		s.watchLifeline(input(t, message))
		if got := context.Cause(ctx); !errors.Is(got, want) {
			t.Errorf("%q: the cluster ended with %v, want %v", message, got, want)
		}
	}
}

// TestExitEndsAClusterThatStarts checks that components may exit only in a cluster that
// is ready.
func TestExitEndsAClusterThatStarts(t *testing.T) {
	status := process.Status{Name: "etcd", State: process.Failed, Cause: "exited with status 1"}
	s, ctx := newSupervisor(t)
	s.died(status)
	assertError(t, "a cluster that starts", context.Cause(ctx), "etcd exited with status 1")
	s, ctx = newSupervisor(t)
	s.up.Store(true)
	s.died(status)
	if err := context.Cause(ctx); err != nil {
		t.Errorf("a cluster that is ready: %v", err)
	}
	s, ctx = newSupervisor(t)
	s.ending.Store(true)
	s.died(status)
	if err := context.Cause(ctx); err != nil {
		t.Errorf("a cluster that ends: %v", err)
	}
}

// TestNFTMustBeInstalledAndWork checks the reasons why a cluster has no kube-proxy.
func TestNFTMustBeInstalledAndWork(t *testing.T) {
	for _, tc := range []struct{ script, want string }{
		{"", "nft is missing: run apt-get install nftables, or on Fedora dnf install nftables, and start the cluster again"},
		{"for i in 1 2 3 4 5 6 7; do echo $i; done; exit 1", "NFT does not work with this kernel: 3\n4\n5\n6\n7"},
		{"kill -SYS $$", "NFT does not work with this kernel: "},
		{`[ "$*" = "--check add table ip kube-proxy" ]`, ""},
	} {
		s, _ := newSupervisor(t)
		if err := os.Mkdir(LogDir(s.config.Dir), 0o755); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		t.Setenv("PATH", dir)
		nft := filepath.Join(dir, "nft")
		if tc.script != "" {
			if err := os.WriteFile(nft, []byte("#!/bin/sh\n"+tc.script+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		err := s.checkNFT()
		if tc.want == "" {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		assertError(t, tc.script, err, strings.Replace(tc.want, "NFT", nft, 1))
	}
}
