package apitest

import "time"

func elapsedTime(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}
