package templating

import (
	"akri.sh/akri/templating/internal/expr"
	"akri.sh/akri/templating/internal/fault"
)

// builder renders nodes to values and tracks its position in the object.
type builder struct {
	reporter
	machine *expr.Machine
	path    Path // of the value being rendered
}

// reportIn reports a fault in the text at the current path.
func (b *builder) reportIn(t *expr.Text, f *fault.Fault) { b.report(b.path, t.Source(), f) }

// pay pays for a part of the object: its text in JSON, and memory.
func (b *builder) pay(output int, memory int64) bool {
	err := b.machine.Budget.Spend(output, memory)
	if err == nil {
		err = b.machine.Budget.Step(1)
	}
	if err != nil {
		b.report(b.path, "", fault.At(fault.Whole, err))
	}
	return err == nil
}

// exhausted reports whether the object cannot be completed.
func (b *builder) exhausted() bool { return b.machine.Budget.Exhausted() }
