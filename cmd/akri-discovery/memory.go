package main

import (
	"os"
	"runtime/debug"
)

// gcPercent halves the heap that the Go runtime lets grow before it collects garbage,
// which is 4 MiB by default. The live heap of an idle handler has about 1 MiB.
const gcPercent = 50

// limitGarbage sets gcPercent. GOGC, if set, takes precedence.
func limitGarbage() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
