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

// Limit makes the Go runtime collect garbage when the live heap has grown by a half, unless GOGC is
// set, and lowers GOMEMLIMIT by an eighth: the manifests set it to the limit of the container,
// which also counts memory that the Go runtime does not know of.
func Limit() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
	if os.Getenv("GOMEMLIMIT") != "" {
		limit := debug.SetMemoryLimit(-1)
		debug.SetMemoryLimit(limit - limit/8)
	}
}
