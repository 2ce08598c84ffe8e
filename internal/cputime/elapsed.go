package cputime

import "time"

func elapsed(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}
