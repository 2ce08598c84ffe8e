package udev

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Bounds on what is read.
const (
	maxAttributeBytes = 4096
	maxUeventBytes    = 16 << 10
	maxDatabaseBytes  = 64 << 10
)

// tree is sysfs and udev's data. Methods that return an error have three outcomes: what
// exists, an error for which isAbsent holds, and an error after which nothing is known.
type tree struct {
	// sys and run are the directories that are normally /sys and /run/udev.
	sys, run string
	files    fileSystem
	reader   *reader
	// failed counts failures by reason.
	failed func(reason string)
}

// fileSystem has the functions of the operating system that the tree uses. Tests replace them.
type fileSystem struct {
	lstat    func(name string) (os.FileInfo, error)
	readlink func(name string) (string, error)
	readDir  func(name string) ([]os.DirEntry, error)
	read     func(name string, limit int64) (string, error)
}

func newTree(sys, run string, failed func(reason string)) *tree {
	system := fileSystem{lstat: os.Lstat, readlink: os.Readlink, readDir: os.ReadDir, read: readUpTo}
	return &tree{sys: sys, run: run, files: system, reader: newReader(system.read), failed: failed}
}

// udevd reports whether udevd runs.
func (t *tree) udevd() bool { return t.has(filepath.Join(t.run, "control")) }

// writtenTime returns when udevd wrote an entry of its database, or zero if there is none. As
// udevd replaces entries, the time of their directory, whose name is empty, is that of the last
// change.
func (t *tree) writtenTime(name string) time.Time {
	info, err := t.files.lstat(filepath.Join(t.run, "data", name))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// exists reports whether a device exists.
func (t *tree) exists(devPath string) bool { return t.has(filepath.Join(t.sys, devPath, "uevent")) }

// has reports whether a file exists. It does unless it is certain that it does not.
func (t *tree) has(file string) bool {
	_, err := t.files.lstat(file)
	return err == nil || !isAbsent(err)
}

// resolve returns the path of the device that a link in sysfs points to.
func (t *tree) resolve(link string) (devPath string, err error) {
	target, err := t.files.readlink(link)
	if err != nil {
		return "", err
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join(filepath.Dir(link), target)
	}
	devPath, ok := strings.CutPrefix(target, t.sys)
	if !ok || !isDevPath(devPath) {
		return "", fmt.Errorf("%s is not the link of a device: %w", link, syscall.ENOENT)
	}
	return devPath, nil
}

// isDevPath reports whether a text is a clean path below /devices.
func isDevPath(text string) bool {
	return strings.HasPrefix(text, "/devices/") && path.Clean(text) == text
}

// attribute reads an attribute, without the newline at its end. As in udev, "driver",
// "module" and "subsystem" are the last element of the link's target.
func (t *tree) attribute(devPath, name string) (value string, found bool, err error) {
	file := filepath.Join(t.sys, devPath, name)
	info, err := t.files.lstat(file)
	switch {
	case err != nil:
		return "", false, err
	case info.Mode().Type() == os.ModeSymlink && (name == "driver" || name == "module" || name == "subsystem"):
		value, err = t.files.readlink(file)
		value = path.Base(value)
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o444 == 0:
		return "", false, nil
	case name == "uevent":
		value, err = t.reader.content(file, info, maxUeventBytes)
	default:
		value, err = t.reader.content(file, info, maxAttributeBytes)
	}
	if err != nil {
		return "", false, err
	}
	return strings.TrimRight(value, "\r\n"), true, nil
}

// unread returns the error if it leaves open what a file contains, and counts that.
func (t *tree) unread(err error) error {
	switch {
	case err == nil || isAbsent(err):
		return nil
	case errors.Is(err, errTimeout) || errors.Is(err, errStuck):
		t.failed(failedAttribute)
	default:
		t.failed(failedRead)
	}
	return err
}

// readUpTo reads the beginning of a file.
func readUpTo(file string, limit int64) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, limit))
	return string(content), err
}
