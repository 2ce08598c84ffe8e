package supervisor

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/kubebox/cluster/internal/control"
	"akri.sh/akri/kubebox/cluster/internal/process"
	"akri.sh/akri/kubebox/cluster/internal/wire"
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

func TestUnknownRoleIsRejected(t *testing.T) {
	assertError(t, "an executable of another version", runRole("dance"), "unknown role AKRI_CLUSTER_ROLE=dance")
}

func TestSupervisorRejectsAnInvalidConfiguration(t *testing.T) {
	err := Run(input(t, ""), nil, nil, nil)
	assertError(t, "the starter has exited", err, "reading the configuration: EOF")
}

func TestForwardRejectsInvalidRequests(t *testing.T) {
	const incomplete = "the request must have a listener, and a name of the form NAMESPACE/SERVICE:PORT"
	for _, tc := range []struct {
		name      string
		listeners int
		want      string
	}{
		{"default/web:http", 0, incomplete},
		{"default/web:http", 2, incomplete},
		{"", 1, incomplete},
		{"default", 1, incomplete},
		{"web:http", 1, incomplete},
		{"/web:http", 1, incomplete},
		{"default/:http", 1, incomplete},
		{"default/web", 1, incomplete},
		{"default/web:", 1, incomplete},
		{"default/web:http", 1, "open DIR/pki/admin.crt: no such file or directory"}, // accepted
	} {
		s, _ := newSupervisor(t)
		files := make([]*os.File, tc.listeners)
		response, _ := s.handle(t.Context(), wire.Request{Op: wire.Forward, Name: tc.name}, files)
		if want := strings.Replace(tc.want, "DIR", s.config.Dir, 1); response.Error != want {
			t.Errorf("%q with %d listeners\n got %s\nwant %s", tc.name, tc.listeners, response.Error, want)
		}
	}
	s, _ := newSupervisor(t)
	s.config.Isolated = false
	_, err := s.forward(wire.Request{Op: wire.Forward, Name: "default/web:http"}, make([]*os.File, 1))
	assertError(t, "ordinary processes", err, "the cluster has no nodes, so no Service has endpoints")
}

// TestFailedForwardClosesConnections checks a Service without endpoints.
func TestFailedForwardClosesConnections(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go forwardTo(listener, func() (string, error) { return "", errors.New("no endpoint") })
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("read %d bytes, %v", n, err)
	}
}

func TestNodeRejectsActionsThatDoNotFit(t *testing.T) {
	s, _ := newSupervisor(t)
	m := s.newMachine(0)
	for action, want := range map[string]string{
		"stop":    "node1 is not running",
		"kill":    "node1 is not running",
		"restart": "node1 is not running",
		"pause":   `unknown action "pause" for a node: use one of start, stop, restart, kill`,
		"":        `unknown action "" for a node: use one of start, stop, restart, kill`,
	} {
		assertError(t, action, m.Do(action), want)
	}
	if entries, err := os.ReadDir(s.config.Dir); err != nil || len(entries) > 0 {
		t.Errorf("the node was booted: %v, %v", entries, err)
	}
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

func TestRequestEndsTheCluster(t *testing.T) {
	s, ctx := newSupervisor(t)
	go s.handle(t.Context(), wire.Request{Op: wire.End}, nil) // never returns
	select {
	case <-ctx.Done():
	case <-time.After(10 * time.Second):
	}
	if got := context.Cause(ctx); !errors.Is(got, errStopRequested) {
		t.Errorf("the cluster ended with %v", got)
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
