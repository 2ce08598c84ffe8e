package templating

import (
	"maps"
	"slices"
	"strings"

	v0 "akri.sh/akri/api/v0"
)

// Instance is what templates may know of an Instance.
type Instance struct {
	Name       string
	Properties map[string]string // its brokerProperties
	Nodes      []string          // the nodes that see the device, in any order
	Shared     bool              // whether more than one node can see it
}

// Values is what a Set is rendered with. Render reads it and keeps nothing of it.
type Values struct {
	Configuration string // the name of the Configuration
	Namespace     string // the namespace of the Configuration
	Capacity      int64
	Instance      Instance   // at instance level
	Instances     []Instance // at configuration level, in any order
}

// The values inside expressions are nil, bool, int64, float64, string, []any,
// map[string]any and the following two, which are maps that look different in
// messages and in longer text. None is ever changed once it is made.
type (
	// propertyMap is INSTANCE_PROPERTIES.
	propertyMap map[string]any
	// selectorMap is LABEL_SELECTOR: in longer text it is k=v,k=v.
	selectorMap map[string]any
)

// asMap is the one way to see a value as a map.
func asMap(value any) (map[string]any, bool) {
	switch m := value.(type) {
	case map[string]any:
		return m, true
	case propertyMap:
		return m, true
	case selectorMap:
		return m, true
	}
	return nil, false
}

// scope is the values of one Render by the names templates use. It makes each
// when it is first asked for, so it belongs to one goroutine.
type scope struct {
	level   Level
	values  Values
	element any // bound by for-each

	nodeList     []any
	instanceList []any
	propertyMap  propertyMap
	selectorMap  selectorMap
}

func (s *scope) nodes() any {
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

func (s *scope) properties() any {
	if s.propertyMap == nil {
		s.propertyMap = propertiesOf(s.values.Instance)
	}
	return s.propertyMap
}

func (s *scope) selector() any {
	if s.selectorMap == nil {
		s.selectorMap = selectorMap{v0.LabelConfiguration: s.values.Configuration}
		if s.level == InstanceLevel {
			s.selectorMap[v0.LabelInstance] = s.values.Instance.Name
		}
	}
	return s.selectorMap
}

func (s *scope) resource() any {
	if s.level == InstanceLevel {
		return v0.ResourceName(s.values.Instance.Name)
	}
	return v0.ResourceName(s.values.Configuration)
}

func (s *scope) instances() any {
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

func propertiesOf(instance Instance) propertyMap {
	properties := make(propertyMap, len(instance.Properties))
	for key, value := range instance.Properties {
		properties[key] = value
	}
	return properties
}

// sortedList is a list of distinct strings; it is never nil.
func sortedList(texts []string) []any {
	distinct := slices.Compact(slices.Sorted(slices.Values(texts)))
	list := make([]any, len(distinct))
	for i, text := range distinct {
		list[i] = text
	}
	return list
}

// keysOf is the keys of a map, sorted.
func keysOf(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// kindName names the type of a value as authors know it.
func kindName(value any) string {
	switch value.(type) {
	case nil:
		return "nothing"
	case bool:
		return "true or false"
	case int64:
		return "a whole number"
	case float64:
		return "a number"
	case string:
		return "text"
	case []any:
		return "a list"
	}
	return "a map"
}

// truthy is what if, and, or, not and when ask: false, 0, "", nothing, and empty
// lists and maps are not.
func truthy(value any) bool {
	switch v := value.(type) {
	case nil:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	}
	m, _ := asMap(value)
	return len(m) > 0
}
