package garbage

import (
	"os"
	"runtime/debug"
)

// percent halves the garbage that the Go runtime lets accumulate. Of a small heap, that is up
// to 4 MiB by default, and the live heap of an idle handler has about 1 MiB. In the controller,
// it also halves what cannot be returned after a burst: memory in which a few objects of the
// caches lie between garbage.
const percent = 50

// Limit makes the Go runtime collect garbage when the live heap has grown by a half. GOGC, if
// set, takes precedence.
func Limit() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}
