package templating

import (
	"slices"
	"strings"
)

// binding is what the for-each directive of a template binds.
type binding int

const (
	bindsNothing  binding = iota
	bindsNode             // for-each: NODES
	bindsInstance         // for-each: INSTANCES
)

// variable is a bare word with a value.
type variable struct {
	name string
	// refuse says why the variable cannot be used here, and what to use
	// instead; "" when it can.
	refuse func(level Level, binds binding) (cause, hint string)
	get    func(*scope) any
	// structured variables cannot be written into longer text.
	structured bool
}

// variables is every bare word a template may use, sorted; docs/templating.md says
// what they are. A name may be refused at one level or outside for-each: that is
// told apart from a name nobody knows.
var variables = []variable{
	{name: "CAPACITY", get: func(s *scope) any { return s.values.Capacity }},
	{name: "CONFIGURATION_NAME", get: func(s *scope) any { return s.values.Configuration }},
	{name: "INSTANCE", refuse: onlyForEach(bindsInstance), get: func(s *scope) any { return s.element }, structured: true},
	{name: "INSTANCES", refuse: onlyConfigurationLevel, get: (*scope).instances, structured: true},
	{name: "INSTANCE_NAME", refuse: onlyInstanceLevel, get: func(s *scope) any { return s.values.Instance.Name }},
	{name: "INSTANCE_PROPERTIES", refuse: onlyInstanceLevel, get: (*scope).properties, structured: true},
	{name: "LABEL_SELECTOR", get: (*scope).selector},
	{name: "NAMESPACE", get: func(s *scope) any { return s.values.Namespace }},
	{name: "NODE", refuse: onlyForEach(bindsNode), get: func(s *scope) any { return s.element }},
	{name: "NODES", get: (*scope).nodes},
	{name: "PLACEHOLDER", get: (*scope).resource},
	{name: "RESOURCE_NAME", get: (*scope).resource},
	{name: "SHARED", refuse: onlyInstanceLevel, get: func(s *scope) any { return s.values.Instance.Shared }},
}

func onlyInstanceLevel(level Level, binds binding) (cause, hint string) {
	switch {
	case level == InstanceLevel:
		return "", ""
	case binds == bindsInstance:
		return "exists in instanceBrokerResources only", "use INSTANCE.name, INSTANCE.properties.KEY and INSTANCE.nodes"
	}
	return "belongs to one Instance, and configurationBrokerResources are made once for all Instances",
		"move the template to instanceBrokerResources, or use INSTANCES, the list of all Instances with name, properties and nodes"
}

func onlyConfigurationLevel(level Level, _ binding) (cause, hint string) {
	if level == ConfigurationLevel {
		return "", ""
	}
	return "is the list of all Instances, and instanceBrokerResources are made for one Instance each",
		"move the template to configurationBrokerResources, or use INSTANCE_NAME, INSTANCE_PROPERTIES and NODES of this Instance"
}

func onlyForEach(want binding) func(Level, binding) (cause, hint string) {
	list := "NODES"
	if want == bindsInstance {
		list = "INSTANCES"
	}
	return func(level Level, binds binding) (cause, hint string) {
		switch {
		case binds == want:
			return "", ""
		case want == bindsInstance && level == InstanceLevel:
			return "exists only in configurationBrokerResources made for each of INSTANCES",
				"use INSTANCE_NAME, INSTANCE_PROPERTIES and NODES of this Instance"
		}
		return "exists only in a template that is made for each of " + list,
			`add the annotation akri.sh/for-each: ` + list + ` to the template's metadata`
	}
}

func variableNamed(name string) (variable, bool) {
	i, found := slices.BinarySearchFunc(variables, name, func(v variable, name string) int {
		return strings.Compare(v.name, name)
	})
	if !found {
		return variable{}, false
	}
	return variables[i], true
}

// variableNames are the variables a template at this level can use, under
// for-each perhaps.
func variableNames(level Level) []string {
	var names []string
	for _, v := range variables {
		if v.name == "PLACEHOLDER" || v.refuse != nil && !slices.ContainsFunc([]binding{bindsNothing, bindsNode, bindsInstance}, func(binds binding) bool {
			cause, _ := v.refuse(level, binds)
			return cause == "" && (binds != bindsInstance || level == ConfigurationLevel)
		}) {
			continue
		}
		names = append(names, v.name)
	}
	return names
}

// usableNames are these variables and all functions: the words to suggest for
// one that nobody knows.
func usableNames(level Level) []string {
	names := variableNames(level)
	for _, f := range functions {
		names = append(names, f.Name)
	}
	return names
}
