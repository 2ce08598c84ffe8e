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

	"akri.sh/akri/internal/backoff"
)

const (
	lockFile = "agent.lock"
	// lockPoll is the delay between attempts to get the lock, while another agent is
	// exiting. It does not grow: an attempt is a system call on a file of this node, and
	// Pods wait until this agent serves.
	lockPoll = 500 * time.Millisecond
)

// lock waits until no other agent runs in the directory, and locks it. The kernel
// releases the lock when the process exits.
func lock(ctx context.Context, dir string, log *slog.Logger) (unlock func(), err error) {
	path := filepath.Join(dir, lockFile)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the node: %w", err)
	}
	for waiting := false; ; waiting = true {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			file.Close()
			return nil, fmt.Errorf("lock the node with %s: %w", path, err)
		}
		if !waiting {
			log.Info("Another agent is running on this node; waiting until it exits", "lock", path)
		}
		if !backoff.Sleep(ctx, lockPoll) {
			file.Close()
			return nil, ctx.Err()
		}
	}
}
