package budget

import "fmt"

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

// LimitError reports that a template is too large or too expensive.
type LimitError struct {
	What  string // the limited quantity, as in "objects created by one for-each"
	Limit int64
	Unit  string // of Limit; may be empty
	Hint  string // what to change; may be empty
}

func (e *LimitError) Error() string {
	limit := fmt.Sprint(e.Limit)
	if e.Unit != "" {
		limit += " " + e.Unit
	}
	return fmt.Sprintf("too much: %s are limited to %s", e.What, limit)
}

// Remedy returns the hint for a message.
func (e *LimitError) Remedy() string {
	if e.Hint == "" {
		return "use less"
	}
	return e.Hint
}

const (
	lessWork   = "reduce the work: fewer passes, shorter texts, fewer objects"
	lessBefore = "reduce the work of the templates before this one, or split the list among several Configurations"
)

// stepLimit returns the limit of a template, or of the whole list.
func stepLimit(ofList bool) *LimitError {
	if ofList {
		return &LimitError{What: "evaluation steps of all templates in a list", Limit: maxRenders * maxSteps, Hint: lessBefore}
	}
	return &LimitError{What: "evaluation steps of one template and all its objects", Limit: maxSteps, Hint: lessWork}
}

// memoryLimit returns the limit of a template, or of the whole list.
func memoryLimit(ofList bool) *LimitError {
	if ofList {
		const what = "results and intermediate results of all templates in a list"
		return &LimitError{What: what, Limit: maxRenders * maxAllocation >> 20, Unit: "MiB", Hint: lessBefore}
	}
	const what = "results and intermediate results of one template and all its objects"
	return &LimitError{What: what, Limit: maxAllocation >> 20, Unit: "MiB", Hint: lessWork}
}

func objectMemoryLimit() *LimitError {
	const what = "results and intermediate results of one object"
	return &LimitError{What: what, Limit: maxObjectAllocation >> 20, Unit: "MiB", Hint: lessWork}
}

func depthLimit() *LimitError {
	return &LimitError{What: "levels of lists and maps", Limit: MaxDepth}
}

// ObjectLimit returns the error for an object or a text that is too large.
func ObjectLimit() *LimitError {
	return &LimitError{
		What: "texts and objects", Limit: MaxObjectBytes >> 10, Unit: "KiB",
		Hint: "produce less text, or split the object",
	}
}
