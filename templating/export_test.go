package templating

// Call runs a function of the table outside any template.
func (f Function) Call(args ...any) (any, error) {
	m := &machine{budget: newBudget(maxSteps, maxAllocation)}
	return f.call(m, args)
}
