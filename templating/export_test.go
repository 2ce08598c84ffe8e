package templating

// VariableNames returns the bare words of the language.
func VariableNames() []string {
	var names []string
	for _, v := range variables {
		names = append(names, v.Name)
	}
	return names
}

// DirectiveKeys returns the annotations that are directives.
func DirectiveKeys() []string { return directiveKeys }
