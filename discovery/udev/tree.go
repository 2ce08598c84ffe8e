package udev

import (
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// Bounds on what is read.
const (
	maxAttributeBytes = 4096
	maxUeventBytes    = 16 << 10
	maxDatabaseBytes  = 64 << 10
	// attributeTimeout is how long reading an attribute may take. Some drivers ask the
	// device.
	attributeTimeout = time.Second
	// maxBlockedReads bounds the reads that did not return in time. The kernel cannot be
	// made to end them. While there are as many, further attributes count as missing.
	maxBlockedReads = 8
)

// tree is sysfs and udev's data.
type tree struct {
	// sys and run are the directories that are normally /sys and /run/udev.
	sys, run string
	// blocked has an entry for each read that has not returned.
	blocked chan struct{}
	// failed counts failures by reason.
	failed func(reason string)
}

func newTree(sys, run string, failed func(reason string)) *tree {
	return &tree{sys: sys, run: run, blocked: make(chan struct{}, maxBlockedReads), failed: failed}
}

// udevd reports whether udevd runs, so that new devices will get an entry in its database.
func (t *tree) udevd() bool {
	_, err := os.Lstat(filepath.Join(t.run, "control"))
	return err == nil
}

// exists reports whether a device exists.
func (t *tree) exists(devPath string) bool {
	_, err := os.Lstat(filepath.Join(t.sys, devPath, "uevent"))
	return err == nil
}

// resolve returns the path of the device that a link in sysfs points to.
func (t *tree) resolve(link string) (devPath string, ok bool) {
	target, err := os.Readlink(link)
	if err != nil {
		return "", false
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join(filepath.Dir(link), target)
	}
	devPath, ok = strings.CutPrefix(target, t.sys)
	return devPath, ok && isDevPath(devPath)
}

// isDevPath reports whether a text is a clean path below /devices.
func isDevPath(text string) bool {
	return strings.HasPrefix(text, "/devices/") && path.Clean(text) == text
}

// linkBase returns the last element of the target of a link in a device's directory.
func (t *tree) linkBase(devPath, name string) string {
	target, err := os.Readlink(filepath.Join(t.sys, devPath, name))
	if err != nil {
		return ""
	}
	return path.Base(target)
}

// attribute reads an attribute, without the newline at its end. As in udev, "driver",
// "module" and "subsystem" are the last element of the link's target.
func (t *tree) attribute(devPath, name string) (value string, found bool) {
	file := filepath.Join(t.sys, devPath, name)
	info, err := os.Lstat(file)
	switch {
	case err != nil:
		return "", false
	case info.Mode().Type() == os.ModeSymlink:
		if name != "driver" && name != "module" && name != "subsystem" {
			return "", false
		}
		base := t.linkBase(devPath, name)
		return base, base != ""
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o444 == 0:
		return "", false
	}
	content, ok := t.readInTime(file)
	return strings.TrimRight(content, "\r\n"), ok
}

// readInTime reads a file up to maxAttributeBytes, unless that takes too long.
func (t *tree) readInTime(file string) (content string, ok bool) {
	select {
	case t.blocked <- struct{}{}:
	default:
		t.failed(failedAttribute)
		return "", false
	}
	type result struct {
		content string
		err     error
	}
	done := make(chan result, 1)
	go func() {
		text, err := readUpTo(file, maxAttributeBytes)
		<-t.blocked
		done <- result{text, err}
	}()
	deadline := time.NewTimer(attributeTimeout)
	defer deadline.Stop()
	select {
	case r := <-done:
		return r.content, r.err == nil
	case <-deadline.C:
		t.failed(failedAttribute)
		return "", false
	}
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
