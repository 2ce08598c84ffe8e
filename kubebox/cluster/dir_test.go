package cluster

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// asNobody calls a function as an unprivileged user. Only root can.
func asNobody(run func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine, and no other one has its user
		const nobody = 65534
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 {
			result <- errno
			return
		}
		result <- run()
	}()
	return <-result
}

// TestRunDirectoryIsCheckedBeforeTheBuild checks that CheckDir finds what Start would find, and changes nothing.
func TestRunDirectoryIsCheckedBeforeTheBuild(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "dir-") // paths of sockets are short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	writeFile(t, filepath.Join(dir, "file"), "")
	writeFile(t, filepath.Join(dir, "full", "notes"), "")
	for name, s := range map[string]state{"crashed": exited, "running": running(t)} {
		writeFile(t, filepath.Join(dir, name, "log", "etcd.log"), "")
		if err := s.write(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("empty", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	long := "/tmp/" + strings.Repeat("x", maxDir)
	for path, want := range map[string]string{ // the end of the error; empty: none
		dir + "/new":      "",
		dir + "/empty":    "",
		dir + "/crashed":  "",
		dir + "/running":  "a cluster is already running in " + dir + "/running",
		dir + "/full":     dir + "/full is not empty and holds no cluster: choose an empty or new directory",
		"/":               "/ is not empty and holds no cluster: choose an empty or new directory",
		dir + "/file":     dir + "/file is not a directory: choose another path",
		dir + "/link":     dir + "/link is not a directory: choose another path",
		dir + "/file/run": dir + "/file/run cannot be created in " + dir + "/file: not a directory: choose another path",
		dir + "/no/run":   dir + "/no/run cannot be created in " + dir + "/no: no such file or directory: choose another path",
		long:              "the sockets below it allow only 48: choose a shorter path",
	} {
		err := CheckDir(path, false)
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasSuffix(err.Error(), want)) {
			t.Errorf("%s\n got %v\nwant %s", path, err, want)
		}
	}
	const hidden = "is below /var, which nodes replace with their own: choose another directory"
	if err := CheckDir("/var/tmp/run", true); err == nil || !strings.HasSuffix(err.Error(), hidden) {
		t.Errorf("a directory that nodes do not see: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); !os.IsNotExist(err) {
		t.Errorf("the check has created the directory: %v", err)
	}
	if _, err := os.Stat(stateFile(filepath.Join(dir, "crashed"))); err != nil {
		t.Errorf("the check has removed the crashed cluster: %v", err)
	}
}

func TestRunDirectoryOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	dir, err := os.MkdirTemp("/tmp", "dir-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, stateFile(filepath.Join(dir, "demo")), "{}")
	if err := os.Chmod(stateFile(filepath.Join(dir, "demo")), 0o600); err != nil {
		t.Fatal(err)
	}
	const denied = ": permission denied: choose another path"
	for path, want := range map[string]string{"/new": "/new cannot be created in " + dir + denied, "/demo": "/demo cannot be used" + denied} {
		err := asNobody(func() error { return CheckDir(dir+path, false) })
		if err == nil || !strings.HasPrefix(err.Error(), dir+want) {
			t.Errorf("%s\n got %v\nwant %s%s", path, err, dir, want)
		}
	}
	want := "the cluster in " + dir + "/demo is another user's: "
	if err := asNobody(func() error { return Down(dir + "/demo") }); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("down\n got %v\nwant %s", err, want)
	}
}
