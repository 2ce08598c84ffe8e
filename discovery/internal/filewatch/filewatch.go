// Package filewatch tells when one file comes, changes or goes.
package filewatch

import (
	"fmt"
	"path/filepath"

	"github.com/fsnotify/fsnotify"
)

// File signals each change of a file, which need not exist; its folder must.
// Changes that follow each other closely may come as one. stop ends it. On an
// error the channel never signals, so a caller that looks at intervals anyway
// may go on without.
func File(path string) (changed <-chan struct{}, stop func(), err error) {
	watcher, err := fsnotify.NewWatcher()
	if err == nil {
		// The folder: the watch of a file ends when the file is replaced.
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
		case _, open := <-watcher.Errors: // events were lost, so perhaps one of ours
			if !open {
				return
			}
		}
		select {
		case signal <- struct{}{}:
		default: // one is waiting already
		}
	}
}
