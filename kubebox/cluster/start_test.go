package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"akri.sh/akri/kubebox/cluster/internal/supervisor"
)

// writeFile writes a file with its directory.
func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}

// assertFailure fails the test unless err has a text.
func assertFailure(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("\n got %v\nwant %s", err, want)
	}
}

// running is the state of a cluster whose supervisor is this process.
func running(t *testing.T) state {
	t.Helper()
	started, err := startTimeOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	return state{Name: "akri-none", Nodes: []string{"node1", "node2"}, Pid: os.Getpid(), StartTime: started}
}

// exited is the state of a cluster whose supervisor has exited.
var exited = state{Name: "akri-none", Pid: os.Getpid(), StartTime: "1"}

func TestRunDirectoryIsClaimed(t *testing.T) {
	for _, tc := range []struct {
		reason string
		files  map[string]string
		state  *state
		want   string // DIR: the directory; empty: no error
	}{
		{"empty", nil, nil, ""},
		{"another program's", map[string]string{"notes": ""}, nil, "DIR is not empty and holds no cluster: choose an empty or new directory"},
		{"an unreadable record", map[string]string{"cluster.json": "{"}, nil, "DIR/cluster.json: unexpected end of JSON input"},
		{"of a running cluster", nil, new(running(t)), "a cluster is already running in DIR"},
		{"of a crashed cluster", map[string]string{"log/etcd.log": ""}, &exited, ""},
	} {
		dir := t.TempDir()
		for name, content := range tc.files {
			writeFile(t, filepath.Join(dir, name), content)
		}
		if tc.state != nil {
			if err := tc.state.write(dir); err != nil {
				t.Fatal(err)
			}
		}
		err := claim(dir)
		if tc.want != "" {
			if want := strings.ReplaceAll(tc.want, "DIR", dir); err == nil || err.Error() != want {
				t.Errorf("%s\n got %v\nwant %s", tc.reason, err, want)
			}
			continue
		}
		if left, readErr := os.ReadDir(dir); err != nil || readErr != nil || len(left) > 0 {
			t.Errorf("%s: %v, %v, it contains %v", tc.reason, err, readErr, left)
		}
	}
	if err := claim("/no/such/directory"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("below a missing directory: %v", err)
	}
}

func TestReexecIsRequired(t *testing.T) {
	reexecCalled = false
	defer func() { reexecCalled = true }()
	const want = "cluster.Reexec was not called: call it at the start of main or TestMain"
	if _, err := Start(t.Context(), Config{}); err == nil || err.Error() != want {
		t.Errorf("Start: %v", err)
	}
	if err := Probe(); err == nil || err.Error() != want || errors.As(err, new(*NoNodesError)) {
		t.Errorf("Probe: %v", err)
	}
}

func TestReportsAreFollowed(t *testing.T) {
	for _, tc := range []struct{ reports, want string }{
		{`{"progress": "1"}` + "\n" + `{"progress": "2"}` + "\n" + `{"ready": true}`, ""},
		{`{"error": "etcd exited"}`, "etcd exited"},
		{"", "the supervisor exited unexpectedly"},
		{`{"progress": "1"}`, "the supervisor exited unexpectedly"},
		{"panic: ", "invalid character 'p'"},
	} {
		var progress []string
		_, err := follow(strings.NewReader(tc.reports), func(text string) { progress = append(progress, text) })
		if tc.want != "" {
			assertFailure(t, err, tc.want)
		} else if err != nil || !slices.Equal(progress, []string{"1", "2"}) {
			t.Errorf("got %q, %v", progress, err)
		}
	}
}

// numbers returns lines with the numbers up to n.
func numbers(n int) string {
	var lines strings.Builder
	for i := range n {
		fmt.Fprintln(&lines, i+1)
	}
	return lines.String()
}

// TestStartHasATimeout starts programs that never become ready, and then one that exits. The error has what all of them
// say: the logs are removed.
func TestStartHasATimeout(t *testing.T) {
	bin, dir := fakeBin(t), filepath.Join(fakeBin(t), "run")
	for _, program := range []string{"etcd", "kube-apiserver"} {
		writeFile(t, filepath.Join(bin, program), "#!/bin/sh\necho waiting for etcd\nexec sleep 100\n")
	}
	_, err := Start(t.Context(), Config{Bin: bin, Dir: dir, Timeout: 500 * time.Millisecond})
	assertFailure(t, err, "starting a cluster in "+dir+": not ready within 500ms\n")
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the run directory is left: %v", err)
	}
	other := filepath.Join(supervisor.LogDir(dir), "kube-apiserver.log")
	writeFile(t, filepath.Join(bin, "etcd"), "#!/bin/sh\nuntil [ -s "+other+" ]; do sleep 0.01; done; echo no disk; exit 3\n")
	_, err = Start(t.Context(), Config{Bin: bin, Dir: dir})
	assertFailure(t, err, "\nthe end of "+other+":\nwaiting for etcd")
	assertFailure(t, err, "etcd exited with status 3; the end of "+filepath.Join(supervisor.LogDir(dir), "etcd.log")+":\nno disk")
}

func TestOnlyRunningClustersAreOpened(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir); !errors.As(err, new(*NoClusterError)) {
		t.Errorf("an empty directory: %v", err)
	}
	if err := Down(dir); !errors.As(err, new(*NoClusterError)) {
		t.Errorf("an empty directory: %v", err)
	}
	writeFile(t, supervisorLog(dir), numbers(20))
	if err := exited.write(dir); err != nil {
		t.Fatal(err)
	}
	_, err := Open(dir)
	assertFailure(t, err, "the supervisor of the cluster in "+dir+" has exited; its log:\n6\n7\n")
	if err := Down(dir); err != nil {
		t.Error(err)
	}
	if err := (&Cluster{dir: dir, state: exited}).leftovers(); err != nil {
		t.Errorf("after Down: %v", err)
	}
}

// TestSupervisorThatDoesNotExitIsKilled removes a cluster whose supervisor sleeps.
func TestSupervisorThatDoesNotExitIsKilled(t *testing.T) {
	child := exec.Command("sleep", "100")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { // it is a zombie until here
		_ = child.Process.Kill()
		_ = child.Wait()
	}()
	started, err := startTimeOf(child.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{dir: t.TempDir(), state: state{Name: "akri-none", Pid: child.Process.Pid, StartTime: started}}
	if err := c.removeWithin(50 * time.Millisecond); err != nil {
		t.Error(err)
	}
	if c.state.alive() {
		t.Error("the supervisor was not killed")
	}
}

// TestInterruptedStart checks that the run directory of a program that was killed before its cluster had a supervisor can
// be used again and be removed, and that of one that still runs cannot.
func TestInterruptedStart(t *testing.T) {
	dir := t.TempDir()
	starting := func(s state) {
		t.Helper()
		s.Starting = true
		writeFile(t, filepath.Join(dir, "images", "00-pause.tar"), "")
		if err := s.write(dir); err != nil {
			t.Fatal(err)
		}
	}
	want := fmt.Sprintf("the cluster in %s is being started: wait until process %d has done so, or stop that process", dir, os.Getpid())
	starting(running(t))
	_, err := Open(dir)
	for what, err := range map[string]error{"Open": err, "Down": Down(dir), "claim": claim(dir)} {
		if err == nil || err.Error() != want {
			t.Errorf("%s, while it starts\n got %v\nwant %s", what, err, want)
		}
	}
	starting(exited)
	_, err = Open(dir)
	assertFailure(t, err, "the start of the cluster in "+dir+" was interrupted")
	if err := claim(dir); err != nil {
		t.Error(err)
	}
	starting(exited)
	if err := Down(dir); err != nil {
		t.Error(err)
	}
}

// TestKilledStarterLeavesARecord starts programs that do nothing, and reads what a starter has recorded before its cluster
// had a supervisor.
func TestKilledStarterLeavesARecord(t *testing.T) {
	bin, dir := fakeBin(t), filepath.Join(fakeBin(t), "run")
	fifo := filepath.Join(dir, "..", "image.tar") // the starter waits there until it is written
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	var recorded state
	var recordErr error
	var reading sync.WaitGroup
	reading.Go(func() {
		image, err := os.OpenFile(fifo, os.O_WRONLY, 0) // returns when the starter copies the image
		if err == nil {
			recorded, recordErr = readState(dir)
			image.Close()
		}
	})
	_, err := Start(t.Context(), Config{Bin: bin, Dir: dir, Nodes: 1, Images: []string{fifo}, Purpose: "test", Timeout: time.Second})
	if errors.As(err, new(*NoNodesError)) {
		t.Skip(err)
	}
	reading.Wait()
	if recordErr != nil || !recorded.Starting || !recorded.alive() || recorded.Purpose != "test" {
		t.Errorf("while the images are copied, the record is %+v, %v", recorded, recordErr)
	}
}
