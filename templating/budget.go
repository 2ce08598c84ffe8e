package templating

import "fmt"

// Limits that authors meet. They are far above what brokers need and far below
// what hurts a controller.
const (
	// MaxTemplates is how many templates a list may have.
	MaxTemplates = 64
	// MaxExpressionBytes is how long a string with expressions may be.
	MaxExpressionBytes = 8 << 10
	// MaxObjectBytes is how large one rendered object may be: the text of its
	// keys and values, and what JSON needs around them.
	MaxObjectBytes = 256 << 10
	// MaxElements is how many objects one for-each may make.
	MaxElements = 1000
	// MaxRange is how many elements one range may visit.
	MaxRange = 1000
	// MaxIterations is how many passes all ranges of one object may make.
	MaxIterations = 10_000
	// MaxDepth is how deep lists, maps and blocks may be nested.
	MaxDepth = 100

	// maxSteps is the work one template may cause for all its objects together;
	// a step takes some tens of nanoseconds.
	maxSteps = 1_000_000
	// maxAllocation is the memory, in bytes, that one template may ask for while
	// it is rendered, its objects included.
	maxAllocation = 22 << 20
	// maxCompiled is the memory, in bytes, that the expressions of one template
	// may take to compile.
	maxCompiled = 8 << 20
	// maxRenders bounds what a whole list may cost, in templates that use up
	// their budget.
	maxRenders = 4
)

// LimitError says that a template is too large or too much work.
type LimitError struct {
	What  string // what there is too much of, as in "objects made by one for-each"
	Limit int64
	Unit  string // of Limit; may be empty
}

func (e *LimitError) Error() string {
	limit := fmt.Sprint(e.Limit)
	if e.Unit != "" {
		limit += " " + e.Unit
	}
	return fmt.Sprintf("too much: %s are limited to %s", e.What, limit)
}

func (e *LimitError) hint() string {
	switch e.What {
	case limitSteps, limitMemory:
		return "let it do less: fewer passes, shorter texts, fewer objects"
	case limitObject:
		return "make less text, or divide it into several objects"
	case limitElements:
		return "divide the devices among several Configurations"
	}
	return "do with less"
}

// What the limits of the budget are about.
const (
	limitSteps    = "steps of evaluation for one template and all its objects"
	limitMemory   = "results and intermediate results of one template and all its objects"
	limitObject   = "texts and objects"
	limitElements = "objects made by one for-each"
)

// budget counts what is left. One is shared by all objects of a template; the
// part that belongs to a single object is renewed by nextObject.
type budget struct {
	steps      int64
	allocation int64

	iterations  int64
	objectBytes int64
	exhausted   *LimitError
}

func newBudget(steps, allocation int64) *budget {
	b := &budget{steps: steps, allocation: allocation}
	b.nextObject()
	return b
}

func (b *budget) nextObject() {
	b.iterations = MaxIterations
	b.objectBytes = MaxObjectBytes
	if b.steps >= 0 && b.allocation >= 0 {
		b.exhausted = nil
	}
}

// step pays for work, in steps.
func (b *budget) step(n int64) error {
	b.steps -= n
	if b.steps < 0 {
		return b.exhaust(&LimitError{What: limitSteps, Limit: maxSteps})
	}
	return nil
}

// allocate pays for memory before it is asked for.
func (b *budget) allocate(bytes int64) error {
	b.allocation -= bytes
	if b.allocation < 0 {
		return b.exhaust(&LimitError{What: limitMemory, Limit: maxAllocation >> 20, Unit: "MiB"})
	}
	return nil
}

// iterate pays for one pass of a range.
func (b *budget) iterate() error {
	b.iterations--
	if b.iterations < 0 {
		return b.exhaust(&LimitError{What: "passes of all ranges in one object", Limit: MaxIterations})
	}
	return b.step(1)
}

// output pays for bytes of the object that is being made.
func (b *budget) output(bytes int) error {
	b.objectBytes -= int64(bytes)
	if b.objectBytes < 0 {
		return b.exhaust(&LimitError{What: limitObject, Limit: MaxObjectBytes >> 10, Unit: "KiB"})
	}
	return nil
}

// spendOn pays for a part of the object: its text and its memory.
func (b *budget) spendOn(output int, memory int64) error {
	if err := b.output(output); err != nil {
		return err
	}
	return b.allocate(memory)
}

// exhaust remembers the limit, so that the object is given up.
func (b *budget) exhaust(e *LimitError) error {
	b.exhausted = e
	return e
}

// Estimates of what Go allocates.
const (
	stringHeader  = 16
	listHeader    = 24
	mapHeader     = 48
	mapGroup      = 272 // eight entries, the least a map has
	bytesPerEntry = 56

	compiledText = 1200 // an expression, without its parts
	compiledNode = 200
)

func mapBytes(entries int) int64 {
	if entries <= 8 {
		return mapHeader + mapGroup
	}
	return mapHeader + mapGroup + 2*bytesPerEntry*int64(entries)
}

func listBytes(elements int) int64 { return listHeader + 16*int64(elements) }

// measure walks a value, pays a step per element and refuses what is nested too
// deep. A value may share its parts with itself, so that walking it can take
// far longer than making it.
func (b *budget) measure(value any, depth int) error {
	if depth > MaxDepth {
		return b.exhaust(&LimitError{What: "levels of lists and maps", Limit: MaxDepth})
	}
	switch v := value.(type) {
	case string:
		return b.step(1 + int64(len(v))/64)
	case []any:
		if err := b.step(1 + int64(len(v))/4); err != nil {
			return err
		}
		for _, element := range v {
			if err := b.measure(element, depth+1); err != nil {
				return err
			}
		}
	default:
		m, isMap := asMap(value)
		if !isMap {
			return b.step(1)
		}
		if err := b.step(1 + 2*int64(len(m))); err != nil {
			return err
		}
		for _, element := range m {
			if err := b.measure(element, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}
