package templating_test

import (
	"runtime"
	"syscall"
	"time"
)

// timed returns the processor time of f on its own thread. Unlike the clock it does
// not depend on the load of the machine.
func timed(f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, after syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_THREAD, &before) != nil {
		return wallTime(f)
	}
	f()
	_ = syscall.Getrusage(syscall.RUSAGE_THREAD, &after) // it worked before
	return time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())
}
