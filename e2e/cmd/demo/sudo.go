package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"akri.sh/akri/e2e/akri"
)

// caller is the user who has called sudo, and reads what the demo prints.
type caller struct{ uid, gid int }

// sudoCaller returns the user who has called sudo, and false if this process does not run as root for another user.
func sudoCaller() (caller, bool) {
	uid, err := strconv.Atoi(os.Getenv("SUDO_UID"))
	gid, gidErr := strconv.Atoi(os.Getenv("SUDO_GID"))
	return caller{uid, gid}, err == nil && gidErr == nil && uid > 0 && os.Geteuid() == 0
}

// sudoPrefix returns what makes a command that another user runs one of root. sudo has a PATH of its own, often without
// go and kubectl.
func sudoPrefix() string {
	if _, ok := sudoCaller(); ok {
		return `sudo env "PATH=$PATH" `
	}
	return ""
}

// shareBuilds lets the user who has called sudo run what this process and its children build: their umask may be that of
// a user whose files nobody else may read.
func shareBuilds() {
	if _, ok := sudoCaller(); ok {
		syscall.Umask(0o022)
	}
}

// handOver gives files and directories, without those below, to the user who has called sudo. What does not exist is
// left out.
func handOver(paths ...string) error {
	user, ok := sudoCaller()
	if !ok {
		return nil
	}
	for _, path := range paths {
		if err := os.Lchown(path, user.uid, user.gid); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// handOverTree gives a directory with everything below it to the user who has called sudo.
func handOverTree(dir string) error {
	var paths []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // another build has replaced it
		}
		paths = append(paths, path)
		return err
	})
	return errors.Join(err, handOver(paths...))
}

// handOverBuilds gives a directory of programs in a checkout of the user who has called sudo to them, so that they can
// build again without sudo.
func handOverBuilds(programs akri.Programs) error {
	user, ok := sudoCaller()
	if !ok {
		return nil
	}
	info, err := os.Stat(programs.Root)
	if err != nil {
		return err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || int(stat.Uid) != user.uid {
		return nil
	}
	return handOverTree(programs.Dir)
}

// handOver gives the user who has called sudo what the printed commands need: the directory of the cluster, which only its
// owner may enter, the kubeconfig there, and the file that makes the devices of debugEcho disappear.
func (d localDemo) handOver(t demoTarget) error {
	return handOver(string(d), t.kubeconfig, d.processes(), filepath.Dir(t.availability), t.availability)
}
