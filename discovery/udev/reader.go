package udev

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"
)

const (
	// readTimeout is how long reading a file of sysfs may take. Some drivers ask the
	// device, or wait for a lock that a driver holds while it probes the device.
	readTimeout = time.Second
	// maxStuckReads bounds the reads that have exceeded readTimeout and not returned; the
	// kernel cannot be made to end them. Each occupies a thread. While there are as many,
	// no further file is read. Reads that are not late do not count.
	maxStuckReads = 32
	// maxResultAge is how old the result of a late read may be when it is used. It is
	// longer than the pause before the next attempt.
	maxResultAge = 5 * time.Second
)

var (
	errTimeout = errors.New("the kernel has not answered in time")
	errStuck   = errors.New("too many reads wait for the kernel")
)

// reader reads files of sysfs without waiting long for any. It is safe for concurrent
// use.
type reader struct {
	read func(file string, limit int64) (string, error)
	// timeout is the constant and now the system's time, except in tests.
	timeout time.Duration
	now     func() time.Time

	mu sync.Mutex // protects what follows
	// late are the reads that have exceeded the timeout, by file.
	late map[fileID]*lateRead
	// stuck is how many of those have not returned, including forgotten ones.
	stuck int
}

// fileID identifies a file. A device that is plugged in again has other files, even if
// their paths are the same.
type fileID struct{ device, inode uint64 }

func idOf(info os.FileInfo) fileID {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return fileID{stat.Dev, stat.Ino}
	}
	return fileID{}
}

// lateRead is a read that has been started. The reader's mu protects it.
type lateRead struct {
	done    chan struct{}
	text    string
	err     error
	ended   time.Time // zero until then
	isStuck bool
}

func newReader(read func(file string, limit int64) (string, error)) *reader {
	return &reader{read: read, timeout: readTimeout, now: time.Now, late: map[fileID]*lateRead{}}
}

// content returns the beginning of a file. If the kernel does not answer in time, the
// answer is kept for the next call.
func (r *reader) content(file string, id fileID, limit int64) (string, error) {
	own, err := r.begin(file, id, limit)
	if err != nil {
		return "", err
	}
	deadline := time.NewTimer(r.timeout)
	defer deadline.Stop()
	select {
	case <-own.done:
	case <-deadline.C:
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if own.ended.IsZero() {
		own.isStuck = true
		r.stuck++
		r.late[id] = own
		return "", errTimeout
	}
	return own.text, own.err
}

// begin starts a read, or returns a late one that has returned. It never starts a second
// one for a file that is stuck.
func (r *reader) begin(file string, id fileID, limit int64) (*lateRead, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for each, read := range r.late {
		if !read.ended.IsZero() && r.now().Sub(read.ended) > maxResultAge {
			delete(r.late, each)
		}
	}
	if former := r.late[id]; former != nil {
		if former.ended.IsZero() {
			return nil, errTimeout
		}
		delete(r.late, id)
		return former, nil
	}
	if r.stuck >= maxStuckReads {
		return nil, errStuck
	}
	own := &lateRead{done: make(chan struct{})}
	go func() {
		text, err := r.read(file, limit)
		r.mu.Lock()
		defer r.mu.Unlock()
		own.text, own.err, own.ended = text, err, r.now()
		if own.isStuck {
			r.stuck--
		}
		close(own.done)
	}()
	return own, nil
}

// isAbsent reports whether an error means that something does not exist or has no value.
// After any other error, nothing is known about it.
func isAbsent(err error) bool {
	var number syscall.Errno
	if !errors.As(err, &number) {
		return false
	}
	switch number {
	case syscall.ENOENT, syscall.ENOTDIR, syscall.ENODEV, syscall.ENXIO, // gone
		syscall.ENODATA, syscall.EINVAL, syscall.EOPNOTSUPP, syscall.ENOSYS, // drivers, for what a device lacks
		syscall.EACCES, syscall.EPERM, // the handler will never be permitted to
		syscall.ELOOP, syscall.ENAMETOOLONG:
		return true
	}
	return false
}

// isOfDriver reports whether an error that is not about absence is the answer of a driver.
// Others are about time, or about the resources of the handler or of the node.
func isOfDriver(err error) bool {
	var number syscall.Errno
	if !errors.As(err, &number) {
		return false
	}
	switch number {
	case syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOBUFS, syscall.EINTR, syscall.EAGAIN:
		return false
	}
	return true
}
