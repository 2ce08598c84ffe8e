package templating

import (
	"strconv"
)

// Level is one of the two lists of templates in a Configuration.
type Level int

const (
	// InstanceLevel templates are rendered for each Instance.
	InstanceLevel Level = iota
	// ConfigurationLevel templates are rendered once for a Configuration that
	// has Instances.
	ConfigurationLevel
)

// String returns the field of a Configuration's spec that holds the list.
func (l Level) String() string {
	if l == ConfigurationLevel {
		return "configurationBrokerResources"
	}
	return "instanceBrokerResources"
}

// Origin identifies the template of an object.
type Origin struct {
	Level Level
	Index int // in the list; negative: the list as a whole
	// Element is the node or the name of the Instance for which for-each rendered
	// the object; empty without for-each.
	Element string
}

// String returns instanceBrokerResources[2], followed by the element in
// parentheses.
func (o Origin) String() string {
	if o.Index < 0 {
		return o.Level.String()
	}
	return o.Of(o.Level.String() + "[" + strconv.Itoa(o.Index) + "]")
}

// Of returns the name of the template, followed by the element in parentheses.
func (o Origin) Of(name string) string {
	if o.Element == "" {
		return name
	}
	return name + " (" + o.Element + ")"
}

// Template returns the origin without the element.
func (o Origin) Template() Origin { return Origin{Level: o.Level, Index: o.Index} }

// Object is a rendered template.
type Object struct {
	// Content is the object to apply. It shares nothing with other values, so the
	// caller may change it. Numbers are int64 or float64.
	Content map[string]any
	// Directives describe how to treat the object.
	Directives Directives
	// Origin is the template.
	Origin Origin
	// Allocated estimates the memory, in bytes, that rendering the object took. The
	// content takes no more.
	Allocated int64
}
