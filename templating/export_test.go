package templating

// Call runs a function of the table outside any template.
func (f Function) Call(args ...any) (any, error) {
	m := &machine{budget: newBudget(maxSteps, maxAllocation)}
	return f.call(m, args)
}

// VariableNames is the bare words of the language.
func VariableNames() []string {
	var names []string
	for _, v := range variables {
		names = append(names, v.name)
	}
	return names
}

// DirectiveKeys is the annotations that are directives.
func DirectiveKeys() []string { return directiveKeys }
