package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

func TestProcessesOf(t *testing.T) {
	const (
		ours   = "\x00--data-dir=/run/kubebox-1/data"
		theirs = "\x00--data-dir=/run/kubebox-12/data"
	)
	programs := []string{etcd, apiServer}
	cases := map[string]struct {
		commands map[int]string
		pids     []int
		want     string
	}{
		"one of each, and others": {
			commands: map[int]string{
				7: "/bin/etcd" + ours, 4: "/bin/kube-apiserver" + ours, 5: "/bin/etcd" + theirs, 6: "/bin/kubectl" + ours, 8: "",
			},
			pids: []int{7, 4},
		},
		"a program is missing": {
			commands: map[int]string{7: "/bin/etcd" + ours, 5: "/bin/kube-apiserver" + theirs},
			want:     "find kube-apiserver: got 0 processes, want 1",
		},
		"twice one program, and no other": {
			commands: map[int]string{7: "/bin/etcd" + ours, 8: "/bin/etcd" + ours},
			want:     "find etcd: got 2 processes, want 1",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			proc := t.TempDir()
			for pid, command := range c.commands {
				writeFile(t, filepath.Join(proc, strconv.Itoa(pid), "cmdline"), command)
			}
			if err := os.Mkdir(filepath.Join(proc, "9"), 0o700); err != nil { // it exits meanwhile
				t.Fatal(err)
			}
			got, err := processesOf(proc, "/run/kubebox-1", programs)
			expectError(t, err, c.want)
			if !slices.Equal(got, c.pids) {
				t.Errorf("got the processes %v, want %v", got, c.pids)
			}
		})
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
