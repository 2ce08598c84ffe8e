// Package filewatch signals when a file is created, changed or deleted.
package filewatch

import (
	"fmt"
	"path/filepath"

	"github.com/fsnotify/fsnotify"
)

// File returns a channel that signals changes of a file, and a function that stops
// the watch. The file need not exist, but its directory must. Changes in quick
// succession may be signalled once. After an error the channel never signals, so a
// caller that also polls may ignore the error.
func File(path string) (changed <-chan struct{}, stop func(), err error) {
	watcher, err := fsnotify.NewWatcher()
	if err == nil {
		// A watch of the file itself would end when the file is replaced.
		if err = watcher.Add(filepath.Dir(path)); err != nil {
			watcher.Close()
		}
	}
	if err != nil {
		return nil, func() {}, fmt.Errorf("watch %s: %w", path, err)
	}
	signal := make(chan struct{}, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run(watcher, filepath.Base(path), signal)
	}()
	return signal, func() {
		watcher.Close()
		<-ended
	}, nil
}

func run(watcher *fsnotify.Watcher, name string, signal chan<- struct{}) {
	for {
		select {
		case event, open := <-watcher.Events:
			if !open {
				return
			}
			if filepath.Base(event.Name) != name || event.Op == fsnotify.Chmod {
				continue
			}
		case _, open := <-watcher.Errors: // events were lost, perhaps of this file
			if !open {
				return
			}
		}
		select {
		case signal <- struct{}{}:
		default: // a signal is pending
		}
	}
}
