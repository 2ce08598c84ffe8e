package budget

import (
	"errors"
	"math"
	"strings"
	"testing"

	"akri.sh/akri/templating/internal/fault"
)

const (
	stepMessage = "too much: evaluation steps of one template and all its objects are limited to 1000000; " +
		"reduce the work: fewer passes, shorter texts, fewer objects"
	memoryMessage = "too much: results and intermediate results of one template and all its objects are limited to 22 MiB; " +
		"reduce the work: fewer passes, shorter texts, fewer objects"
	objectMemoryMessage = "too much: results and intermediate results of one object are limited to 8 MiB; " +
		"reduce the work: fewer passes, shorter texts, fewer objects"
	objectMessage = "too much: texts and objects are limited to 256 KiB; produce less text, or split the object"
	passesMessage = "too much: passes of all ranges in one object are limited to 10000; use less"
	depthMessage  = "too much: levels of lists and maps are limited to 100; use less"
)

// message returns the error as an author reads it, with the remedy.
func message(err error) string {
	if err == nil {
		return ""
	}
	f, ok := errors.AsType[*fault.Fault](err)
	if !ok || !errors.Is(f, ErrLimit) {
		return "not a limit: " + err.Error()
	}
	return f.Error() + "; " + f.Hint
}

// TestLimits spends exactly what each limit allows, and then one more.
func TestLimits(t *testing.T) {
	for name, tc := range map[string]struct {
		allowed, beyond func(*Budget) error
		want            string
	}{
		"steps": {
			func(b *Budget) error { return b.Step(1_000_000) },
			func(b *Budget) error { return b.Step(1) }, stepMessage,
		},
		"memory of an object": {
			func(b *Budget) error { return b.Allocate(8 << 20) },
			func(b *Budget) error { return b.Allocate(1) }, objectMemoryMessage,
		},
		"memory of a template": {
			func(b *Budget) error { return allocateInObjects(b, 8<<20, 8<<20, 6<<20) },
			func(b *Budget) error { return b.Allocate(1) }, memoryMessage,
		},
		"passes": {
			func(b *Budget) error { return iterate(b, 10_000) },
			func(b *Budget) error { return b.Iterate() }, passesMessage,
		},
		"the steps of passes": {
			func(b *Budget) error { return b.Step(1_000_000) },
			func(b *Budget) error { return b.Iterate() }, stepMessage,
		},
		"text of an object": {
			func(b *Budget) error { return b.Output(256 << 10) },
			func(b *Budget) error { return b.Output(1) }, objectMessage,
		},
		"text of a part": {
			func(b *Budget) error { return b.Spend(256<<10, 1) },
			func(b *Budget) error { return b.Spend(1, 1) }, objectMessage,
		},
		"memory of a part": {
			func(b *Budget) error { return b.Spend(1, 8<<20) },
			func(b *Budget) error { return b.Spend(1, 1) }, objectMemoryMessage,
		},
		"a text that grows": {
			func(b *Budget) error { return b.Grow(256 << 10) },
			func(b *Budget) error { return b.Grow(256<<10 + 1) }, objectMessage,
		},
		"a text whose length overflows": {
			func(b *Budget) error { return b.Grow(0) },
			func(b *Budget) error { return b.Grow(math.MinInt) }, objectMessage,
		},
		"the memory of a text that grows": {
			func(b *Budget) error { return b.Allocate(8<<20 - 1) },
			func(b *Budget) error { return b.Grow(2) }, objectMemoryMessage,
		},
		"the steps of a text that grows": {
			func(b *Budget) error { return b.Step(1_000_000) },
			func(b *Budget) error { return b.Grow(64) }, stepMessage,
		},
		"the memory of an intermediate text": {
			func(b *Budget) error { return b.Pay(0, 8<<20) },
			func(b *Budget) error { return b.Pay(0, 1) }, objectMemoryMessage,
		},
		"the steps of an intermediate text": {
			func(b *Budget) error { return b.Step(1_000_000) },
			func(b *Budget) error { return b.Pay(1, 0) }, stepMessage,
		},
		"a text that fits into no object": {
			func(b *Budget) error { return nil },
			func(b *Budget) error { return b.TooLarge() }, objectMessage,
		},
		"depth": {
			func(b *Budget) error { return b.Descend(100) },
			func(b *Budget) error { return b.Descend(101) }, depthMessage,
		},
		"depth of lists": {
			func(b *Budget) error { return b.Measure(nestedList(100)) },
			func(b *Budget) error { return b.Measure(nestedList(101)) }, depthMessage,
		},
		"depth of maps": {
			func(b *Budget) error { return b.Measure(nestedMap(100)) },
			func(b *Budget) error { return b.Measure(nestedMap(101)) }, depthMessage,
		},
		"the steps of measuring a string": {
			func(b *Budget) error { return b.Step(1_000_000 - 10) },
			func(b *Budget) error { return b.Measure(strings.Repeat("x", 640)) }, stepMessage,
		},
		"the steps of measuring a list": {
			func(b *Budget) error { return b.Step(1_000_000 - 10) },
			func(b *Budget) error { return b.Measure(make([]any, 40)) }, stepMessage,
		},
		"the steps of measuring the elements of a list": {
			func(b *Budget) error { return b.Step(1_000_000 - 4) },
			func(b *Budget) error { return b.Measure(make([]any, 4)) }, stepMessage,
		},
		"the steps of measuring a map": {
			func(b *Budget) error { return b.Step(1_000_000 - 2) },
			func(b *Budget) error { return b.Measure(map[string]any{"a": 1}) }, stepMessage,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := New()
			if err := tc.allowed(b); err != nil || b.Exhausted() {
				t.Fatalf("what is allowed is refused: %s", message(err))
			}
			if got := message(tc.beyond(b)); got != tc.want {
				t.Errorf("one more gives %q\nwant %q", got, tc.want)
			}
			if !b.Exhausted() {
				t.Error("the object is not given up")
			}
		})
	}
}

func allocateInObjects(b *Budget, sizes ...int64) error {
	for _, size := range sizes {
		b.NextObject()
		if err := b.Allocate(size); err != nil {
			return err
		}
	}
	b.NextObject()
	return nil
}

func iterate(b *Budget, passes int) error {
	for range passes {
		if err := b.Iterate(); err != nil {
			return err
		}
	}
	return nil
}

func nestedList(depth int) (v any) {
	for range depth {
		v = []any{v}
	}
	return v
}

func nestedMap(depth int) (v any) {
	for range depth {
		v = map[string]any{"a": v}
	}
	return v
}

// TestNextObject checks that limits of an object end with it, and those of the template
// do not.
func TestNextObject(t *testing.T) {
	for name, tc := range map[string]struct {
		spend func(*Budget) error
		ends  bool // with the object
	}{
		"passes": {func(b *Budget) error { return iterate(b, MaxIterations+1) }, true},
		"text":   {func(b *Budget) error { return b.Output(MaxObjectBytes + 1) }, true},
		"memory": {func(b *Budget) error { return b.Allocate(maxObjectAllocation + 1) }, true},
		"depth":  {func(b *Budget) error { return b.Descend(MaxDepth + 1) }, true},
		"steps":  {func(b *Budget) error { return b.Step(maxSteps + 1) }, false},
		"memory of the template": {
			func(b *Budget) error { return b.Allocate(maxAllocation + 1) }, false,
		},
	} {
		b := New()
		if tc.spend(b) == nil {
			t.Errorf("%s: more than the limit is accepted", name)
		}
		b.NextObject()
		if b.Exhausted() == tc.ends || b.Spent() == tc.ends {
			t.Errorf("%s: the next object is given up: %v; the template has nothing left: %v", name, b.Exhausted(), b.Spent())
		}
	}
}

// TestList checks that a list has as much as four templates that spend all they may, and
// that what a template leaves is there for the others.
func TestList(t *testing.T) {
	const (
		hint  = "; reduce the work of the templates before this one, or split the list among several Configurations"
		steps = "too much: evaluation steps of all templates in a list are limited to 4000000" + hint
		bytes = "too much: results and intermediate results of all templates in a list are limited to 88 MiB" + hint
	)
	for name, tc := range map[string]struct {
		spend     func(*Budget) error
		templates int
		want      string
	}{
		"all steps":         {func(b *Budget) error { return b.Step(maxSteps) }, 4, steps},
		"half of the steps": {func(b *Budget) error { return b.Step(maxSteps / 2) }, 8, steps},
		"all memory":        {func(b *Budget) error { return allocateInObjects(b, 8<<20, 8<<20, 6<<20) }, 4, bytes},
		"half of the memory": {
			func(b *Budget) error { return allocateInObjects(b, 8<<20, 3<<20) }, 8, bytes,
		},
	} {
		t.Run(name, func(t *testing.T) {
			list := NewList()
			for i := range tc.templates {
				list.Run(func(b *Budget) {
					if err := tc.spend(b); err != nil {
						t.Errorf("template %d of %d: %s", i+1, tc.templates, message(err))
					}
				})
			}
			list.Run(func(b *Budget) {
				if got := message(tc.spend(b)); got != tc.want || !b.Spent() {
					t.Errorf("template %d gives %q\nwant %q", tc.templates+1, got, tc.want)
				}
			})
		})
	}
}
