package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sync/errgroup"
)

var (
	errReplaced = errors.New("the directory was replaced")
	// errStaleMount means that the host has replaced a directory that is mounted by
	// itself. Only a new container gets the new one.
	errStaleMount = errors.New("the directory was deleted on the host, and is still mounted here: the agent must restart to reach the new one")
)

// Run watches the kubelet's directories until ctx is done, and calls started each time
// the kubelet's registration socket is created. It returns an error if the agent must
// restart.
func (r *Registrar) Run(ctx context.Context, started func()) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return r.watchSocket(ctx, started) })
	group.Go(func() error { return r.watchPlugins(ctx) })
	return group.Wait()
}

// watchPlugins compares the directory that the kubelet's plugin watcher scans with the
// one that it was, until ctx is done or another path is used. It returns an error if the
// agent must restart.
func (r *Registrar) watchPlugins(ctx context.Context) error {
	path := r.dir(byWatcher)
	dir, _ := os.Open(path) // stays open, so that a new directory does not get its inode
	defer func() { _ = dir.Close() }()
	tick := time.NewTicker(r.interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if used, _ := r.current(); used != byWatcher {
			return nil
		}
		before, _ := dir.Stat()
		err := checkDir(path, before)
		switch {
		case err == nil:
			continue
		case errors.Is(err, errStaleMount):
			return err
		}
		r.doubt(err)
		_ = dir.Close()
		if dir, err = os.Open(path); err != nil && r.alive() {
			r.missed()
		}
	}
}

// watchSocket watches the kubelet's registration socket until ctx is done, and calls
// started each time the socket is created. It returns an error if the agent must restart.
func (r *Registrar) watchSocket(ctx context.Context, started func()) error {
	w := &socketWatch{dir: r.dir(byRegister), interval: r.interval, started: func() {
		r.kubeletStarted()
		started()
	}}
	w.socket, _ = os.Lstat(w.path())
	told := false
	for ctx.Err() == nil {
		watched, err := w.run(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errStaleMount):
			return err
		case errors.Is(err, errReplaced):
			r.log.Info("Watching the kubelet's new directory", "dir", w.dir)
			continue
		case !told || watched:
			r.log.Warn("Cannot watch the kubelet's registration socket; trying again", "err", err)
		}
		told = true
		select {
		case <-ctx.Done():
		case <-time.After(rewatchDelay):
		}
	}
	return nil
}

// socketWatch watches the kubelet's registration socket.
type socketWatch struct {
	dir      string
	interval time.Duration
	started  func()
	socket   fs.FileInfo // last seen; nil if there was none
}

func (w *socketWatch) path() string { return filepath.Join(w.dir, registerSocket) }

// run watches the directory until the watch ends, and returns why it ended. It reports
// whether the watch had begun.
func (w *socketWatch) run(ctx context.Context) (watched bool, err error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return false, err
	}
	defer watcher.Close()
	dir, err := os.Stat(w.dir)
	if err != nil {
		return false, err
	}
	if err := watcher.Add(w.dir); err != nil {
		return false, err
	}
	w.compare() // the socket may have been created meanwhile
	tick := time.NewTicker(w.interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return true, nil
		case err := <-watcher.Errors:
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				return true, err
			}
			w.compare()
		case <-tick.C:
			if err := w.check(dir); err != nil {
				return true, err
			}
		case event, open := <-watcher.Events:
			switch {
			case !open:
				return true, errors.New("the file watch ended")
			case event.Name == w.dir:
				if err := w.check(dir); err != nil {
					return true, err
				}
			case filepath.Base(event.Name) == registerSocket && event.Has(fsnotify.Create):
				w.compare()
			}
		}
	}
}

// check compares the directory with the watched one, and the socket with the last one.
func (w *socketWatch) check(watched fs.FileInfo) error {
	if err := checkDir(w.dir, watched); err != nil {
		return err
	}
	w.compare()
	return nil
}

// checkDir compares a directory of the kubelet with the one that it was before.
func checkDir(path string, before fs.FileInfo) error {
	dir, err := os.Stat(path)
	switch {
	case err != nil:
		return fmt.Errorf("the kubelet's directory is gone: %w", err)
	case !os.SameFile(dir, before):
		return errReplaced
	}
	if status, ok := dir.Sys().(*syscall.Stat_t); ok && status.Nlink == 0 {
		return fmt.Errorf("%s: %w", path, errStaleMount)
	}
	return nil
}

// compare calls started if the socket is another one than before.
func (w *socketWatch) compare() {
	socket, err := os.Lstat(w.path())
	if err != nil {
		w.socket = nil
		return
	}
	before := w.socket
	w.socket = socket
	// A new socket may have the inode of the old one, but not its time.
	if before == nil || !os.SameFile(before, socket) || !before.ModTime().Equal(socket.ModTime()) {
		w.started()
	}
}
