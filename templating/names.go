package templating

import (
	"slices"
	"strings"

	"akri.sh/akri/templating/internal/expr"
	"akri.sh/akri/templating/internal/fault"
)

// variable is an entry of the table of variables.
type variable struct {
	expr.Variable
	// refuse returns the reason why the variable cannot be used, and what to use
	// instead; "" if it can. A nil refuse never refuses.
	refuse func(level Level, binds binding) (cause, hint string)
	get    func(*scope) any
}

// variables are the bare words that templates can use, sorted;
// docs/templating.md describes them. A variable refused at one level or outside
// for-each gets a different message from an unknown word.
var variables = []variable{
	plain("BROKER_NODES", onlyInstanceLevel, func(s *scope) any { return s.brokerNodes() }),
	plain("CAPACITY", nil, func(s *scope) any { return s.values.Capacity }),
	plain("CONFIGURATION_NAME", nil, func(s *scope) any { return s.values.Configuration }),
	structured("INSTANCE", onlyForEach(bindsInstance), func(s *scope) any { return s.element }, choosePart("INSTANCE")),
	structured("INSTANCES", onlyConfigurationLevel, func(s *scope) any { return s.instances() },
		"make it the whole value, or iterate over it with range: {{ range INSTANCES }}{{ .name }} {{ end }}"),
	plain("INSTANCE_NAME", onlyInstanceLevel, func(s *scope) any { return s.values.Instance.Name }),
	{
		Variable: expr.Variable{Name: propertiesVariable, Properties: true, NotInText: choosePart(propertiesVariable)},
		refuse:   onlyInstanceLevel,
		get:      func(s *scope) any { return s.properties() },
	},
	plain("LABEL_SELECTOR", nil, func(s *scope) any { return s.selector() }),
	plain("NAMESPACE", nil, func(s *scope) any { return s.values.Namespace }),
	plain("NODE", onlyForEach(bindsNode), func(s *scope) any { return s.element }),
	plain("NODES", nil, func(s *scope) any { return s.nodes() }),
	plain(oldResourceName, nil, func(s *scope) any { return s.resource() }),
	plain("RESOURCE_NAME", nil, func(s *scope) any { return s.resource() }),
	plain("SHARED", onlyInstanceLevel, func(s *scope) any { return s.values.Instance.Shared }),
}

const (
	propertiesVariable = "INSTANCE_PROPERTIES"
	oldResourceName    = "PLACEHOLDER" // never suggested
)

func init() {
	for id := range variables {
		variables[id].ID = id
	}
}

// Value returns the value of a variable. It implements expr.Scope.
func (s *scope) Value(id int) any { return variables[id].get(s) }

func plain(name string, refuse func(Level, binding) (cause, hint string), get func(*scope) any) variable {
	return variable{Variable: expr.Variable{Name: name}, refuse: refuse, get: get}
}

func structured(name string, refuse func(Level, binding) (cause, hint string), get func(*scope) any, notInText string) variable {
	return variable{Variable: expr.Variable{Name: name, NotInText: notInText}, refuse: refuse, get: get}
}

func choosePart(name string) string {
	return "make it the whole value, or choose a part of it: {{ " + name + ".KEY }}"
}

func onlyInstanceLevel(level Level, binds binding) (cause, hint string) {
	switch {
	case level == InstanceLevel:
		return "", ""
	case binds == bindsInstance:
		return "exists in instanceBrokerResources only", "use INSTANCE.name, INSTANCE.properties.KEY and INSTANCE.nodes"
	}
	return "belongs to one Instance, and configurationBrokerResources are rendered once for all Instances",
		"move the template to instanceBrokerResources, or use INSTANCES, the list of all Instances with name, properties and nodes"
}

func onlyConfigurationLevel(level Level, _ binding) (cause, hint string) {
	if level == ConfigurationLevel {
		return "", ""
	}
	return "is the list of all Instances, and instanceBrokerResources are rendered for one Instance each",
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
			return "exists only in configurationBrokerResources rendered for each of INSTANCES",
				"use INSTANCE_NAME, INSTANCE_PROPERTIES and NODES of this Instance"
		}
		return "exists only in a template that is rendered for each of " + list,
			`add the annotation akri.sh/for-each: ` + list + ` to the template's metadata`
	}
}

// names are the variables of one template. It implements expr.Names.
type names struct {
	level Level
	binds binding
}

// Lookup returns the variable of that name.
func (n *names) Lookup(name string) (*expr.Variable, error) {
	i, found := slices.BinarySearchFunc(variables, name, func(v variable, name string) int {
		return strings.Compare(v.Name, name)
	})
	if !found {
		return nil, nil
	}
	v := &variables[i]
	if v.refuse != nil {
		if cause, hint := v.refuse(n.level, n.binds); cause != "" {
			return nil, fault.Hintf(hint, "%s %s", name, cause)
		}
	}
	return &v.Variable, nil
}

// Variables returns the variables that exist at this level, with or without
// for-each.
func (n *names) Variables() []string {
	bindings := []binding{bindsNothing, bindsNode}
	if n.level == ConfigurationLevel {
		bindings = append(bindings, bindsInstance)
	}
	var usable []string
	for _, v := range variables {
		exists := v.refuse == nil || slices.ContainsFunc(bindings, func(binds binding) bool {
			cause, _ := v.refuse(n.level, binds)
			return cause == ""
		})
		if exists && v.Name != oldResourceName {
			usable = append(usable, v.Name)
		}
	}
	return usable
}

// Properties returns the variable with the properties of the device.
func (n *names) Properties() string {
	if n.level == InstanceLevel {
		return propertiesVariable
	}
	return ""
}
