package udev

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/fsnotify/fsnotify"
)

// dataWatch notices changes of udev's database.
type dataWatch struct {
	tree    *tree
	watcher *fsnotify.Watcher
}

// openDataWatch watches the database. The error is fs.ErrNotExist if there is none: udevd
// has not run on the node.
func openDataWatch(t *tree) (*dataWatch, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	w := &dataWatch{tree: t, watcher: watcher}
	if err := w.attach(); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// attach watches the directories. That of the entries may be missing: udevd creates it.
func (w *dataWatch) attach() error {
	if err := w.watcher.Add(w.tree.run); err != nil {
		return err
	}
	if err := w.watcher.Add(filepath.Join(w.tree.run, "data")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// changed returns the device whose entry an event is about; "" means all devices. ok is
// false if the event means nothing. After an error, the watch must be opened again.
func (w *dataWatch) changed(event fsnotify.Event) (devPath string, ok bool, err error) {
	base := filepath.Base(event.Name)
	switch filepath.Dir(event.Name) {
	case filepath.Dir(w.tree.run):
		if event.Has(fsnotify.Remove) || event.Has(fsnotify.Rename) {
			return "", false, fmt.Errorf("%s was removed", w.tree.run)
		}
	case w.tree.run:
		if base == "data" && event.Has(fsnotify.Create) {
			return "", true, w.attach()
		}
	case filepath.Join(w.tree.run, "data"):
		// udevd writes a temporary file and renames it.
		if strings.HasPrefix(base, ".") || event.Op == fsnotify.Chmod {
			return "", false, nil
		}
		devPath, err := w.tree.deviceOf(base)
		if err != nil && !isAbsent(err) {
			return "", true, nil
		}
		return devPath, err == nil, nil
	}
	return "", false, nil
}

// deviceOf returns the device that an entry of udev's database is about. It is absent if
// the device is gone.
func (t *tree) deviceOf(record string) (devPath string, err error) {
	if len(record) < 2 || strings.ContainsRune(record, '/') {
		return "", syscall.ENOENT
	}
	switch rest := record[1:]; record[0] {
	case 'b':
		return t.resolve(filepath.Join(t.sys, "dev", "block", rest))
	case 'c':
		return t.resolve(filepath.Join(t.sys, "dev", "char", rest))
	case 'n':
		return t.interfaceOf(rest)
	case '+':
		subsystem, name, separated := strings.Cut(rest, ":")
		if !separated || subsystem == "" || name == "" || name == ".." || subsystem == ".." {
			return "", syscall.ENOENT
		}
		devPath, err = t.resolve(filepath.Join(t.sys, "bus", subsystem, "devices", name))
		if err == nil || !isAbsent(err) {
			return devPath, err
		}
		return t.resolve(filepath.Join(t.sys, "class", subsystem, name))
	}
	return "", syscall.ENOENT
}

// interfaceOf returns the network interface with an index.
func (t *tree) interfaceOf(index string) (devPath string, err error) {
	dir := filepath.Join(t.sys, "class", "net")
	entries, err := t.files.readDir(dir)
	if err != nil {
		return "", err
	}
	var missing error = syscall.ENOENT
	for _, entry := range entries {
		text, err := t.files.read(filepath.Join(dir, entry.Name(), "ifindex"), maxAttributeBytes)
		switch {
		case err == nil && strings.TrimSpace(text) == index:
			return t.resolve(filepath.Join(dir, entry.Name()))
		case err != nil && !isAbsent(err):
			missing = err
		}
	}
	return "", missing
}

func (w *dataWatch) close() { w.watcher.Close() }
