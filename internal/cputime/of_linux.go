package cputime

import (
	"runtime"
	"syscall"
	"time"
)

// Of returns the processor time of f on its own thread.
func Of(f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, after syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_THREAD, &before) != nil {
		return elapsed(f)
	}
	f()
	_ = syscall.Getrusage(syscall.RUSAGE_THREAD, &after) // the first call succeeded
	return time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())
}
