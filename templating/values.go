package templating

import (
	"slices"
	"strings"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/templating/internal/value"
)

// Instance is what templates can read of an Instance.
type Instance struct {
	Name       string
	Properties map[string]string // its brokerProperties
	Nodes      []string          // the nodes that see the device, in the order in which they joined
	Shared     bool              // whether more than one node can see it
}

// Values are the inputs of a rendering. Render does not retain them.
type Values struct {
	Configuration string // the name of the Configuration
	Namespace     string // the namespace of the Configuration
	Capacity      int64
	Instance      Instance   // at instance level
	Instances     []Instance // at configuration level, in any order
}

// binding is what the for-each directive of a template binds.
type binding int

const (
	bindsNothing  binding = iota
	bindsNode             // for-each: NODES
	bindsInstance         // for-each: INSTANCES
)

// scope holds the values of the variables of one rendering. It computes each on
// first use, so it belongs to one goroutine.
type scope struct {
	level   Level
	values  Values
	element any // bound by for-each

	nodeList     []any
	brokerList   []any
	instanceList []any
	propertyMap  value.Properties
	labels       value.Selector
}

func (s *scope) nodes() []any {
	if s.nodeList == nil {
		nodes := s.values.Instance.Nodes
		if s.level == ConfigurationLevel {
			nodes = nil
			for _, instance := range s.values.Instances {
				nodes = append(nodes, instance.Nodes...)
			}
		}
		s.nodeList = sortedList(nodes)
	}
	return s.nodeList
}

// brokerNodes returns the nodes that brokers with one Pod per node run on: as many as
// the device has slots. The first ones are chosen: a node that joins, and so is the last, does
// not move a running broker. The controller puts nodes that take no Pods last (controller/nodes).
func (s *scope) brokerNodes() []any {
	if s.brokerList == nil {
		distinct := make([]string, 0, len(s.values.Instance.Nodes))
		for _, name := range s.values.Instance.Nodes {
			if int64(len(distinct)) >= s.values.Capacity {
				break
			}
			if !slices.Contains(distinct, name) {
				distinct = append(distinct, name)
			}
		}
		s.brokerList = sortedList(distinct)
	}
	return s.brokerList
}

func (s *scope) properties() value.Properties {
	if s.propertyMap == nil {
		s.propertyMap = propertiesOf(s.values.Instance)
	}
	return s.propertyMap
}

// selector returns the labels that select the objects of the Instance; at
// configuration level, those of all its Instances.
func (s *scope) selector() value.Selector {
	if s.labels == nil {
		s.labels = value.Selector{v0.LabelConfiguration: s.values.Configuration, v0.LabelLevel: v0.LevelInstance}
		if s.level == InstanceLevel {
			s.labels[v0.LabelInstance] = s.values.Instance.Name
		}
	}
	return s.labels
}

// ownLabels returns the labels that Akri sets on a rendered object and its Pods.
func (s *scope) ownLabels() value.Selector {
	if s.level == InstanceLevel {
		return s.selector()
	}
	return value.Selector{v0.LabelConfiguration: s.values.Configuration}
}

func (s *scope) resource() string {
	if s.level == InstanceLevel {
		return v0.ResourceName(s.values.Instance.Name)
	}
	return v0.ResourceName(s.values.Configuration)
}

func (s *scope) instances() []any {
	if s.instanceList == nil {
		sorted := slices.Clone(s.values.Instances)
		slices.SortStableFunc(sorted, func(a, b Instance) int { return strings.Compare(a.Name, b.Name) })
		s.instanceList = make([]any, len(sorted))
		for i, instance := range sorted {
			s.instanceList[i] = map[string]any{
				"name":       instance.Name,
				"properties": propertiesOf(instance),
				"nodes":      sortedList(instance.Nodes),
			}
		}
	}
	return s.instanceList
}

// elements returns what for-each iterates over.
func (s *scope) elements(binds binding) []any {
	switch binds {
	case bindsNode:
		return s.nodes()
	case bindsInstance:
		return s.instances()
	}
	return nil
}

// elementName returns the name of a node or of an Instance.
func elementName(element any) string {
	if instance, ok := element.(map[string]any); ok {
		element = instance["name"]
	}
	name, _ := element.(string)
	return name
}

func propertiesOf(instance Instance) value.Properties {
	properties := make(value.Properties, len(instance.Properties))
	for key, property := range instance.Properties {
		properties[key] = property
	}
	return properties
}

// sortedList returns a sorted list of distinct strings. It is never nil.
func sortedList(all []string) []any {
	distinct := slices.Compact(slices.Sorted(slices.Values(all)))
	list := make([]any, len(distinct))
	for i, name := range distinct {
		list[i] = name
	}
	return list
}
