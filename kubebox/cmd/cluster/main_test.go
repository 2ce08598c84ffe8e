package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func runCommand(args ...string) (output string, err error) {
	var out bytes.Buffer
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(io.Discard)
	err = root.Execute()
	return out.String(), err
}

func TestCommandsReportThatThereIsNoCluster(t *testing.T) {
	for _, args := range [][]string{
		{"status"}, {"kubectl", "get", "pods"}, {"exec", "node1", "true"}, {"load", "x.tar"}, {"do", "kill", "etcd"}, {"kubeconfig"},
	} {
		_, err := runCommand(append([]string{"--dir", t.TempDir()}, args...)...)
		if err == nil || !strings.Contains(err.Error(), "there is no cluster in") {
			t.Errorf("%q: %v", args, err)
		}
	}
	if _, err := runCommand("--dir", t.TempDir(), "down"); err != nil {
		t.Errorf("down without a cluster: %v", err)
	}
}

func TestImageCommandWritesAnArchive(t *testing.T) {
	dir := t.TempDir()
	program, archive := filepath.Join(dir, "agent"), filepath.Join(dir, "agent.tar")
	if err := os.WriteFile(program, []byte("x"), 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := runCommand("image", "akri.local/agent:dev", program, "-o", archive)
	if err != nil || strings.TrimSpace(out) != archive {
		t.Fatalf("%q, %v", out, err)
	}
	if _, err := os.Stat(archive); err != nil {
		t.Error(err)
	}
}

func TestCommandsRejectWrongArguments(t *testing.T) {
	t.Setenv("PATH", "") // nothing is built
	for _, tc := range []struct {
		args string
		want string
	}{
		{"build now", `unknown command "now" for "cluster build"`},
		{"image akri.local/agent:dev", "requires at least 2 arg(s), only received 1"},
		{"up now", `unknown command "now" for "cluster up"`},
		{"up --nodes many", `invalid argument "many" for "--nodes" flag`},
		{"down now", `unknown command "now" for "cluster down"`},
		{"status now", `unknown command "now" for "cluster status"`},
		{"kubeconfig now", `unknown command "now" for "cluster kubeconfig"`},
		{"exec node1", "requires at least 2 arg(s), only received 1"},
		{"load", "requires at least 1 arg(s), only received 0"},
		{"do kill", "accepts 2 arg(s), received 1"},
		{"do kill etcd now", "accepts 2 arg(s), received 3"},
		{"dance", `unknown command "dance" for "cluster"`},
	} {
		_, err := runCommand(append([]string{"--dir", t.TempDir()}, strings.Fields(tc.args)...)...)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s\n got %v\nwant %s", tc.args, err, tc.want)
		}
	}
}

func TestCommandsRejectInvalidInput(t *testing.T) {
	t.Setenv("PATH", "") // nothing is built
	program := filepath.Join(t.TempDir(), "agent")
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"image", "a b", program}, "image name: "},
		{[]string{"image", "a:1", program, "--output", program + ".tar"}, "image a:1: open " + program},
		{[]string{"build", "--kubernetes", "v1.36"}, `KUBERNETES: "v1.36": want a complete version`},
		{[]string{"build", "--kubelet", "v1.36"}, `KUBELET: "v1.36": want a complete version`},
		// This program's TestMain does not call Reexec.
		{[]string{"up", "--dir", program}, "cluster.Reexec was not called: call it at the start of main or TestMain"},
	} {
		if _, err := runCommand(tc.args...); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q\n got %v\nwant %s", tc.args, err, tc.want)
		}
	}
}
