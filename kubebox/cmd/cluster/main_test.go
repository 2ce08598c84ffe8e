package main

import (
	"bytes"
	"io"
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
