package budget

import "akri.sh/akri/templating/internal/value"

// Budget is what a template may still cost. All objects of a template share one; NextObject
// resets the part that belongs to a single object.
type Budget struct {
	steps      int64
	allocation int64

	iterations  int64
	objectBytes int64
	// objectAllocation is what the current object may still allocate.
	objectAllocation int64
	exhausted        bool // the current object exceeded a limit and cannot be completed
	// shortSteps and shortAllocation are set if the templates before this one left it
	// less than a template may cost.
	shortSteps, shortAllocation bool
}

// New returns the budget of one template.
func New() *Budget { return newBudget(maxSteps, maxAllocation) }

func newBudget(steps, allocation int64) *Budget {
	b := &Budget{
		steps: steps, allocation: allocation, shortSteps: steps < maxSteps, shortAllocation: allocation < maxAllocation,
	}
	b.NextObject()
	return b
}

// NextObject resets the limits of a single object.
func (b *Budget) NextObject() {
	b.iterations = MaxIterations
	b.objectBytes = MaxObjectBytes
	b.objectAllocation = maxObjectAllocation
	if !b.Spent() {
		b.exhausted = false
	}
}

// Spent reports whether the template cannot render further objects.
func (b *Budget) Spent() bool { return b.steps < 0 || b.allocation < 0 }

// Exhausted reports whether the current object exceeded a limit and cannot be
// completed.
func (b *Budget) Exhausted() bool { return b.exhausted }

// Exhaustf records that the current object exceeded a limit, and returns Limitf.
func (b *Budget) Exhaustf(hint, format string, args ...any) error {
	b.exhausted = true
	return Limitf(hint, format, args...)
}

// Step pays for n steps of work.
func (b *Budget) Step(n int64) error {
	b.steps -= n
	switch {
	case b.steps >= 0:
		return nil
	case b.shortSteps:
		return b.Exhaustf(lessBefore, "evaluation steps of all templates in a list are limited to %d", maxRenders*maxSteps)
	}
	return b.Exhaustf(lessWork, "evaluation steps of one template and all its objects are limited to %d", maxSteps)
}

// Allocate pays for memory before it is allocated.
func (b *Budget) Allocate(bytes int64) error {
	b.allocation -= bytes
	b.objectAllocation -= bytes
	const limit = "results and intermediate results of %s are limited to %d MiB"
	switch {
	case b.allocation < 0 && b.shortAllocation:
		return b.Exhaustf(lessBefore, limit, "all templates in a list", maxRenders*maxAllocation>>20)
	case b.allocation < 0:
		return b.Exhaustf(lessWork, limit, "one template and all its objects", maxAllocation>>20)
	case b.objectAllocation < 0:
		return b.Exhaustf(lessWork, limit, "one object", maxObjectAllocation>>20)
	}
	return nil
}

// ObjectAllocated returns the memory, in bytes, that was paid for the current object.
func (b *Budget) ObjectAllocated() int64 { return maxObjectAllocation - max(b.objectAllocation, 0) }

// Iterate pays for one pass of a range.
func (b *Budget) Iterate() error {
	b.iterations--
	if b.iterations < 0 {
		return b.Exhaustf("", "passes of all ranges in one object are limited to %d", MaxIterations)
	}
	return b.Step(1)
}

// Output pays for bytes of the current object.
func (b *Budget) Output(bytes int) error {
	b.objectBytes -= int64(bytes)
	if b.objectBytes < 0 {
		return b.Exhaustf("produce less text, or split the object", "texts and objects are limited to %d KiB", MaxObjectBytes>>10)
	}
	return nil
}

// Spend pays for a part of the object: its text and its memory.
func (b *Budget) Spend(output int, memory int64) error {
	if err := b.Output(output); err != nil {
		return err
	}
	return b.Allocate(memory)
}

// Grow pays for a text before it is produced, and refuses one that cannot fit
// into any object.
func (b *Budget) Grow(bytes int) error {
	if bytes < 0 || bytes > MaxObjectBytes {
		return b.TooLarge()
	}
	if err := b.Allocate(int64(bytes)); err != nil {
		return err
	}
	return b.Step(int64(bytes) / 64)
}

// TooLarge gives up the current object because of a text that cannot fit into
// any.
func (b *Budget) TooLarge() error { return b.Output(MaxObjectBytes + 1) }

// Pay pays for steps of work and for memory, in bytes.
func (b *Budget) Pay(steps, bytes int64) error {
	if err := b.Step(steps); err != nil {
		return err
	}
	return b.Allocate(bytes)
}

// Measure walks a value, pays a step per element and refuses one that is nested
// too deep. A value may contain the same part many times, so walking it can take
// far longer than creating it.
func (b *Budget) Measure(v any) error { return b.measure(v, 0) }

func (b *Budget) measure(v any, depth int) error {
	if err := b.Descend(depth); err != nil {
		return err
	}
	text, _ := v.(string)
	list, _ := v.([]any)
	fields, _ := value.AsMap(v)
	if err := b.Step(int64(1 + len(text)/64 + len(list)/4 + 2*len(fields))); err != nil {
		return err
	}
	for _, element := range list {
		if err := b.measure(element, depth+1); err != nil {
			return err
		}
	}
	for _, element := range fields {
		if err := b.measure(element, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// Descend refuses a value that is nested deeper than MaxDepth.
func (b *Budget) Descend(depth int) error {
	if depth > MaxDepth {
		return b.Exhaustf("", "levels of lists and maps are limited to %d", MaxDepth)
	}
	return nil
}

// List is the budget of a whole list of templates.
type List struct{ steps, allocation int64 }

// NewList returns the budget of a list.
func NewList() *List {
	return &List{steps: maxRenders * maxSteps, allocation: maxRenders * maxAllocation}
}

// Spent returns the steps and the bytes of memory that the templates have paid for.
func (l *List) Spent() (steps, bytes int64) {
	return maxRenders*maxSteps - l.steps, maxRenders*maxAllocation - l.allocation
}

// Run calls render with the budget of the next template, and deducts what it
// spends.
func (l *List) Run(render func(*Budget)) {
	steps, allocation := min(maxSteps, l.steps), min(maxAllocation, l.allocation)
	b := newBudget(steps, allocation)
	render(b)
	l.steps -= steps - max(b.steps, 0)
	l.allocation -= allocation - max(b.allocation, 0)
}
