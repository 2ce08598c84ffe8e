package apitest

import (
	"runtime"
	"syscall"
	"time"
)

// ProcessorTime returns the processor time of f on its own thread. Unlike the
// elapsed time, it does not depend on the load of the machine.
func ProcessorTime(f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, after syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_THREAD, &before) != nil {
		return elapsedTime(f)
	}
	f()
	_ = syscall.Getrusage(syscall.RUSAGE_THREAD, &after) // the first call succeeded
	return time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())
}
