package udev

import (
	"os"
	"strings"
	"sync"
)

// faults makes operations on some files fail. It is safe for concurrent use.
type faults struct {
	mu     sync.Mutex // protects what follows
	errors map[string]error
	// slow are closed when reading a file may go on.
	slow map[string]chan struct{}
	// reads counts reads by file.
	reads map[string]int
}

// set makes operations on files whose paths end like this fail; nil ends that.
func (f *faults) set(suffix string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errors[suffix] = err
}

// block makes reads of files whose paths end like this wait until answer is called.
func (f *faults) block(suffix string) (answer func()) {
	blocked := make(chan struct{})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.slow[suffix] = blocked
	return sync.OnceFunc(func() {
		f.mu.Lock()
		delete(f.slow, suffix)
		f.mu.Unlock()
		close(blocked)
	})
}

// begun returns how many reads of a file have begun.
func (f *faults) begun(suffix string) (count int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for file, each := range f.reads {
		if strings.HasSuffix(file, suffix) {
			count += each
		}
	}
	return count
}

func (f *faults) of(file string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for suffix, err := range f.errors {
		if err != nil && strings.HasSuffix(file, suffix) {
			return &os.PathError{Op: "test", Path: file, Err: err}
		}
	}
	return nil
}

func (f *faults) wait(file string) {
	f.mu.Lock()
	f.reads[file]++
	var blocked chan struct{}
	for suffix, each := range f.slow {
		if strings.HasSuffix(file, suffix) {
			blocked = each
		}
	}
	f.mu.Unlock()
	if blocked != nil {
		<-blocked
	}
}

// files are the operating system's, with the faults.
func (f *faults) files() fileSystem {
	return fileSystem{
		lstat: os.Lstat,
		readlink: func(name string) (string, error) {
			if err := f.of(name); err != nil {
				return "", err
			}
			return os.Readlink(name)
		},
		readDir: func(name string) ([]os.DirEntry, error) {
			if err := f.of(name); err != nil {
				return nil, err
			}
			return os.ReadDir(name)
		},
		read: func(name string, limit int64) (string, error) {
			f.wait(name)
			if err := f.of(name); err != nil {
				return "", err
			}
			return readUpTo(name, limit)
		},
	}
}

// faulty returns a tree whose files can fail, and the count of failures.
func (m *machine) faulty() (*tree, *faults, *failureCount) {
	f := &faults{errors: map[string]error{}, slow: map[string]chan struct{}{}, reads: map[string]int{}}
	c := &failureCount{counts: map[string]int{}}
	t := newTree(m.sys, m.run, c.add)
	t.files = f.files()
	t.reader = newReader(t.files.read)
	return t, f, c
}

// failureCount counts failures by reason.
type failureCount struct {
	mu     sync.Mutex // protects counts
	counts map[string]int
}

func (c *failureCount) add(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[reason]++
}

func (c *failureCount) of(reason string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts[reason]
}
