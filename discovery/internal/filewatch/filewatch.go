package filewatch

import (
	"fmt"
	"path/filepath"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// All programs of a node share its inotify instances, and the kernel permits few of them:
// 128 to a user by default. So a file has one, however many callers there are.
var (
	mu    sync.Mutex // protects what follows
	files = map[string]*file{}
)

// file is a file with the callers that watch it.
type file struct {
	path    string
	watcher *fsnotify.Watcher
	ended   chan struct{}
	signals map[chan struct{}]bool // protected by mu
}

// File returns a channel that signals changes of a file, and a function that stops
// the watch. The file need not exist, but its directory must. Changes in quick
// succession may be signalled once. After an error the channel never signals, so a
// caller that also polls may ignore the error.
func File(path string) (changed <-chan struct{}, stop func(), err error) {
	mu.Lock()
	defer mu.Unlock()
	f := files[path]
	if f == nil {
		if f, err = open(path); err != nil {
			return nil, func() {}, fmt.Errorf("watch %s: %w", path, err)
		}
		files[path] = f
	}
	signal := make(chan struct{}, 1)
	f.signals[signal] = true
	return signal, func() { f.remove(signal) }, nil
}

func open(path string) (*file, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	// A watch of the file itself would end when the file is replaced.
	if err := watcher.Add(filepath.Dir(path)); err != nil {
		watcher.Close()
		return nil, err
	}
	f := &file{path: path, watcher: watcher, ended: make(chan struct{}), signals: map[chan struct{}]bool{}}
	go func() {
		defer close(f.ended)
		f.run()
	}()
	return f, nil
}

// remove removes a caller. The watch ends with the last one.
func (f *file) remove(signal chan struct{}) {
	mu.Lock()
	delete(f.signals, signal)
	unused := len(f.signals) == 0
	if unused {
		f.forget()
	}
	mu.Unlock()
	if unused {
		f.watcher.Close()
		<-f.ended
	}
}

// forget lets the next caller open another watch.
func (f *file) forget() {
	if files[f.path] == f {
		delete(files, f.path)
	}
}

func (f *file) run() {
	dir := filepath.Dir(f.path)
	for {
		removed := false
		select {
		case event, open := <-f.watcher.Events:
			if !open {
				return
			}
			removed = event.Name == dir && event.Has(fsnotify.Remove)
			if !removed && (filepath.Base(event.Name) != filepath.Base(f.path) || event.Op == fsnotify.Chmod) {
				continue
			}
		case _, open := <-f.watcher.Errors: // events were lost, perhaps of this file
			if !open {
				return
			}
		}
		mu.Lock()
		if removed {
			f.forget() // there is nothing to watch any more
		}
		for signal := range f.signals {
			select {
			case signal <- struct{}{}:
			default: // a signal is pending
			}
		}
		mu.Unlock()
	}
}
