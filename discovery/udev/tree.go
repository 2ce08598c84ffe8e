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
	return newTreeOf(system, sys, run, failed)
}

func newTreeOf(system fileSystem, sys, run string, failed func(reason string)) *tree {
	return &tree{sys: sys, run: run, files: system, reader: newReader(system.read), failed: failed}
}

// udevd reports whether udevd runs, so that new devices will get an entry in its database.
func (t *tree) udevd() bool {
	_, err := t.files.lstat(filepath.Join(t.run, "control"))
	return err == nil || !isAbsent(err)
}

// exists reports whether a device exists. It does unless it is certain that it does not.
func (t *tree) exists(devPath string) bool {
	_, err := t.files.lstat(filepath.Join(t.sys, devPath, "uevent"))
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

// linkBase returns the last element of the target of a link in a device's directory, or ""
// if there is none.
func (t *tree) linkBase(devPath, name string) (string, error) {
	target, err := t.files.readlink(filepath.Join(t.sys, devPath, name))
	switch {
	case err == nil:
		return path.Base(target), nil
	case isAbsent(err):
		return "", nil
	}
	return "", err
}

// attribute reads an attribute, without the newline at its end. As in udev, "driver",
// "module" and "subsystem" are the last element of the link's target.
func (t *tree) attribute(devPath, name string) (value string, found bool, err error) {
	file := filepath.Join(t.sys, devPath, name)
	info, err := t.files.lstat(file)
	switch {
	case err != nil && isAbsent(err):
		return "", false, nil
	case err != nil:
		return "", false, err
	case info.Mode().Type() == os.ModeSymlink:
		if name != "driver" && name != "module" && name != "subsystem" {
			return "", false, nil
		}
		base, err := t.linkBase(devPath, name)
		return base, base != "", err
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o444 == 0:
		return "", false, nil
	}
	content, err := t.reader.content(file, idOf(info), maxAttributeBytes)
	switch {
	case err == nil:
		return strings.TrimRight(content, "\r\n"), true, nil
	case isAbsent(err):
		return "", false, nil
	}
	return "", false, err
}

// uevent reads the kernel's properties of a device.
func (t *tree) uevent(devPath string) (string, error) {
	file := filepath.Join(t.sys, devPath, "uevent")
	info, err := t.files.lstat(file)
	if err != nil {
		return "", err
	}
	return t.reader.content(file, idOf(info), maxUeventBytes)
}

// unread counts an error after which nothing is known.
func (t *tree) unread(err error) {
	if errors.Is(err, errTimeout) || errors.Is(err, errStuck) {
		t.failed(failedAttribute)
		return
	}
	t.failed(failedRead)
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
