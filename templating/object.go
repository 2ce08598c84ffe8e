package templating

import (
	"strconv"
)

// Level tells the two lists of a Configuration apart.
type Level int

const (
	// InstanceLevel templates are rendered for each Instance.
	InstanceLevel Level = iota
	// ConfigurationLevel templates are rendered once for a Configuration that
	// has Instances.
	ConfigurationLevel
)

// String is the field of a Configuration's spec that holds the list.
func (l Level) String() string {
	if l == ConfigurationLevel {
		return "configurationBrokerResources"
	}
	return "instanceBrokerResources"
}

// Origin says which template an object comes from.
type Origin struct {
	Level Level
	Index int // in the list
	// Element is the node or the name of the Instance for which for-each made
	// the object; empty without for-each.
	Element string
}

// String is instanceBrokerResources[2], followed by the element in parentheses.
func (o Origin) String() string {
	template := o.Level.String() + "[" + strconv.Itoa(o.Index) + "]"
	if o.Element == "" {
		return template
	}
	return template + " (" + o.Element + ")"
}

// Object is a rendered template.
type Object struct {
	// Content is the object as it is to be applied. Nothing else refers to it:
	// the caller may change it. Numbers are int64 or float64.
	Content map[string]any
	// Directives say how to treat the object.
	Directives Directives
	// Origin is the template.
	Origin Origin
}
