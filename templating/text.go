package templating

import "fmt"

// Text is a text that is no part of an object, such as spec.displayName of a Configuration.
type Text struct{ set *Set }

// CompileText checks a text with expressions of the instance level, and prepares it for
// rendering. The diagnostics have no place. A text has the limits of a template: it is compiled
// and rendered as a value of a ConfigMap.
func CompileText(source string) (*Text, Diagnostics) {
	set, diagnostics := Compile(InstanceLevel, []map[string]any{{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "text"}, "data": map[string]any{"text": source},
	}})
	for i := range diagnostics {
		diagnostics[i].Field = nil
	}
	return &Text{set}, diagnostics
}

// Render returns the text for values. It returns false if that fails, for example because the
// device does not have a property.
func (t *Text) Render(values Values) (text string, ok bool) {
	objects, _ := t.set.Render(values)
	if len(objects) == 0 {
		return "", false
	}
	return fmt.Sprint(Keys("data", "text").Lookup(objects[0].Content)), true
}
