package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"akri.sh/akri/kubebox/cluster/internal/supervisor"
)

// maxDir bounds the path of the run directory, in bytes. A socket's path is limited
// to 107 bytes, and the kubelet and its plugins create sockets below the run
// directory.
const maxDir = 48

// CheckDir returns an error unless [Start] can use dir as the run directory: dir does not exist and can be created, or is
// empty, or holds a cluster that has crashed. It changes nothing. Start checks this itself; CheckDir is for programs that
// build the executables first, which takes minutes.
func CheckDir(dir string, nodes bool) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := checkPath(dir, nodes); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR), errors.Is(err, fs.ErrPermission):
		return checkParent(dir)
	case err != nil:
		return err
	case !info.IsDir(): // nor a link to a directory, which Stop would leave behind
		return fmt.Errorf("%s is not a directory: choose another path", dir)
	}
	if err := unix.Access(dir, unix.R_OK|unix.W_OK|unix.X_OK); err != nil {
		return fmt.Errorf("%s cannot be used: %w: choose another path, or run this as its owner", dir, err)
	}
	_, err = occupant(dir)
	return err
}

// checkPath returns an error if no cluster, with or without nodes, can have this run directory.
func checkPath(dir string, nodes bool) error {
	if err := checkVisibleInNodes("run directory", dir, "/opt"); err != nil && nodes {
		return err
	}
	if len(dir) > maxDir {
		return fmt.Errorf("the path of the run directory %s is %d bytes long, but the sockets below it allow only %d: choose a shorter path",
			dir, len(dir), maxDir)
	}
	return nil
}

// checkParent returns an error if the run directory cannot be created.
func checkParent(dir string) error {
	parent := filepath.Dir(dir)
	info, err := os.Stat(parent)
	if err == nil && !info.IsDir() {
		err = unix.ENOTDIR
	}
	if err == nil {
		err = unix.Access(parent, unix.W_OK|unix.X_OK)
	}
	if failure, ok := errors.AsType[*fs.PathError](err); ok {
		err = failure.Err
	}
	if err != nil {
		return fmt.Errorf("%s cannot be created in %s: %w: choose another path", dir, parent, err)
	}
	return nil
}

// checkVisibleInNodes rejects a path below a directory that nodes replace. They see the machine's files in /opt, such as a
// checkout, but their own writes to it are hidden.
func checkVisibleInNodes(name, path string, also ...string) error {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		path = resolved
	} else if parent, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil { // Start creates the run directory
		path = filepath.Join(parent, filepath.Base(path))
	}
	for _, hidden := range append([]string{"/var", "/etc", "/run", "/proc", "/sys", "/dev"}, also...) {
		if path == hidden || strings.HasPrefix(path, hidden+"/") {
			return fmt.Errorf("the %s %s is below %s, which nodes replace with their own: choose another directory", name, path, hidden)
		}
	}
	return nil
}

// claim creates the run directory, or takes over that of a crashed cluster.
func claim(dir string) error {
	if err := os.Mkdir(dir, 0o700); err == nil {
		return nil
	} else if !os.IsExist(err) {
		return err
	}
	crashed, err := occupant(dir)
	if err != nil || crashed == nil {
		return err
	}
	if err := supervisor.Remove(dir, crashed.Name); err != nil {
		return err
	}
	return os.Mkdir(dir, 0o700)
}

// occupant returns the record of the crashed cluster in a directory, or nil if the directory is empty. It returns an error
// if the directory contains anything else.
func occupant(dir string) (*state, error) {
	s, err := readState(dir)
	if errors.As(err, new(*NoClusterError)) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		if len(entries) > 0 {
			return nil, fmt.Errorf("%s is not empty and holds no cluster: choose an empty or new directory", dir)
		}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if s.Starting && s.alive() {
		return nil, s.startingError(dir)
	}
	if s.alive() {
		return nil, fmt.Errorf("a cluster is already running in %s", dir)
	}
	return &s, nil
}
