package udev

import (
	"errors"
	"maps"
	"os"
	"slices"
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
	late map[string]*lateRead
	// stuck is how many of those have not returned, including forgotten ones.
	stuck int
}

// lateRead is a read that has been started. The reader's mu protects it.
type lateRead struct {
	// info identifies the file. A device that is plugged in again has other files, even
	// if their paths are the same.
	info    os.FileInfo
	done    chan struct{}
	text    string
	err     error
	ended   time.Time // zero until then
	isStuck bool
}

func newReader(read func(file string, limit int64) (string, error)) *reader {
	return &reader{read: read, timeout: readTimeout, now: time.Now, late: map[string]*lateRead{}}
}

// content returns the beginning of a file. If the kernel does not answer in time, the
// answer is kept for the next call.
func (r *reader) content(file string, info os.FileInfo, limit int64) (string, error) {
	own, err := r.begin(file, info, limit)
	if err != nil {
		return "", err
	}
	select {
	case <-own.done:
	case <-time.After(r.timeout):
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if own.ended.IsZero() {
		own.isStuck = true
		r.stuck++
		r.late[file] = own
		return "", errTimeout
	}
	return own.text, own.err
}

// begin starts a read, or returns a late one that has returned. It never starts a second
// one for a file that is stuck.
func (r *reader) begin(file string, info os.FileInfo, limit int64) (*lateRead, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.late, func(_ string, each *lateRead) bool {
		return !each.ended.IsZero() && r.now().Sub(each.ended) > maxResultAge
	})
	switch former := r.late[file]; {
	case former != nil && os.SameFile(former.info, info) && former.ended.IsZero():
		return nil, errTimeout
	case former != nil && os.SameFile(former.info, info):
		delete(r.late, file)
		return former, nil
	case r.stuck >= maxStuckReads:
		return nil, errStuck
	}
	own := &lateRead{info: info, done: make(chan struct{})}
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

// absences are the errors that mean that something does not exist or has no value.
var absences = []syscall.Errno{
	syscall.ENOENT, syscall.ENOTDIR, syscall.ENODEV, syscall.ENXIO, // gone
	syscall.ENODATA, syscall.EINVAL, syscall.EOPNOTSUPP, syscall.ENOSYS, // drivers, for what a device lacks
	syscall.EACCES, syscall.EPERM, // the handler will never be permitted to
	syscall.ELOOP, syscall.ENAMETOOLONG,
}

// exhaustions are errors about the resources of the handler or of the node.
var exhaustions = []syscall.Errno{
	syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOBUFS, syscall.EINTR, syscall.EAGAIN,
}

// isAbsent reports whether an error means that something does not exist or has no value.
// After any other error, nothing is known about it.
func isAbsent(err error) bool {
	number, ok := errors.AsType[syscall.Errno](err)
	return ok && slices.Contains(absences, number)
}

// isOfDriver reports whether an error that is not about absence is the answer of a driver.
func isOfDriver(err error) bool {
	number, ok := errors.AsType[syscall.Errno](err)
	return ok && !slices.Contains(exhaustions, number)
}
