package udev

import (
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

func openDataWatch(t *tree) (*dataWatch, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	w := &dataWatch{tree: t, watcher: watcher}
	w.attach()
	return w, nil
}

// attach watches the directories that exist. udevd may start later than the handler.
func (w *dataWatch) attach() {
	for _, dir := range []string{w.tree.run, filepath.Join(w.tree.run, "data")} {
		_ = w.watcher.Add(dir) // again after the next scan
	}
}

// changed returns the device whose entry an event is about; "" means all devices. ok is
// false if the event means nothing.
func (w *dataWatch) changed(event fsnotify.Event) (devPath string, ok bool) {
	base := filepath.Base(event.Name)
	switch filepath.Dir(event.Name) {
	case w.tree.run:
		if base != "data" || !event.Has(fsnotify.Create) {
			return "", false
		}
		w.attach()
		return "", true
	case filepath.Join(w.tree.run, "data"):
		// udevd writes a temporary file and renames it.
		if strings.HasPrefix(base, ".") || event.Op == fsnotify.Chmod {
			return "", false
		}
		devPath, err := w.tree.deviceOf(base)
		if err != nil && !isAbsent(err) {
			return "", true
		}
		return devPath, err == nil
	}
	return "", false
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
