package build

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// lockInterval is the time between two attempts to get a lock that another process has.
const lockInterval = 100 * time.Millisecond

// Lock creates a directory, unless it exists, and locks it until the returned function is called or this process exits.
// If another process has the lock, Lock calls waiting once, and waits until ctx is done.
func Lock(ctx context.Context, dir string, waiting func()) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			f.Close()
			return nil, &os.PathError{Op: "lock", Path: f.Name(), Err: err}
		}
		if waiting != nil {
			waiting()
			waiting = nil
		}
		select { // a call that blocks would not end with ctx
		case <-ctx.Done():
			f.Close()
			return nil, context.Cause(ctx)
		case <-time.After(lockInterval):
		}
	}
}
