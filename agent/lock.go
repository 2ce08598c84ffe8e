package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	lockFile = "agent.lock"
	lockPoll = 500 * time.Millisecond // only while another agent is ending
)

// lock waits until no other agent works in the directory and returns what keeps
// it that way until unlocked. The kernel unlocks it when the process ends,
// however it ends.
func lock(ctx context.Context, directory string, log *slog.Logger) (unlock func(), err error) {
	path := filepath.Join(directory, lockFile)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock of the node's agent: %w", err)
	}
	for waiting := false; ; waiting = true {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			file.Close()
			return nil, fmt.Errorf("lock of the node's agent, %s: %w", path, err)
		}
		if !waiting {
			log.Info("another agent works on this node; waiting until it ends", "lock", path)
		}
		select {
		case <-ctx.Done():
			file.Close()
			return nil, ctx.Err()
		case <-time.After(lockPoll):
		}
	}
}
