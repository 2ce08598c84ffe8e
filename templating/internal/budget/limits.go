package budget

import (
	"errors"

	"akri.sh/akri/templating/internal/fault"
)

// Limits that authors may reach. They are far above what brokers need and far below
// what would harm a controller.
const (
	// MaxObjectBytes is the size limit of one rendered object: the text of its
	// keys and values, and what JSON needs around them.
	MaxObjectBytes = 256 << 10
	// MaxRange is the number of elements that one range may visit.
	MaxRange = 1000
	// MaxIterations is the number of passes that all ranges of one object may
	// make.
	MaxIterations = 10_000
	// MaxDepth is how deep lists, maps and blocks may be nested.
	MaxDepth = 100

	// maxSteps is the work that one template may cause for all its objects
	// together. A step takes some tens of nanoseconds.
	maxSteps = 1_000_000
	// maxAllocation is the memory, in bytes, that one template may allocate while
	// it is rendered, its objects included.
	maxAllocation = 22 << 20
	// maxObjectAllocation is the part of it that one object may allocate. It bounds
	// the memory of callers that hold one object at a time.
	maxObjectAllocation = 8 << 20
	// maxRenders bounds the cost of a whole list, in templates that use up their
	// budget.
	maxRenders = 4
)

// ErrLimit is the cause if a template is too large or too expensive.
var ErrLimit = errors.New("too much")

// Limitf returns a fault whose cause is ErrLimit and says what is limited. The hint may be
// empty.
func Limitf(hint, format string, args ...any) *fault.Fault {
	if hint == "" {
		hint = "use less"
	}
	return fault.Newf(fault.Whole, hint, "%w: "+format, append([]any{ErrLimit}, args...)...)
}

const (
	lessWork   = "reduce the work: fewer passes, shorter texts, fewer objects"
	lessBefore = "reduce the work of the templates before this one, or split the list among several Configurations"
)
