package properties

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/discovery/protocol"
)

// Kind is a kind of object that values come from.
type Kind string

// The kinds.
const (
	Secret    Kind = "Secret"
	ConfigMap Kind = "ConfigMap"
)

// Reference names an object that a Configuration refers to.
type Reference struct {
	Kind Kind
	types.NamespacedName
}

func (r Reference) String() string { return fmt.Sprintf("%s %s", r.Kind, r.NamespacedName) }

// Found is what is known of an object.
type Found struct {
	// Values of the object; nil if it does not exist.
	Values map[string][]byte
	// Err says why it could not be read; Pending that it has not been yet.
	Err     error
	Pending bool
}

// Resolved are a Configuration's properties, or why they are not there.
type Resolved struct {
	Properties map[string]*protocol.ByteData
	// Err names the property, the cause and the remedy.
	Err error
	// Pending: wait for the objects to be read.
	Pending bool
}

// references are the objects that a Configuration refers to and may refer to.
func references(configuration *v0.Configuration, crossNamespace bool) (map[Reference]bool, error) {
	wanted := map[Reference]bool{}
	for i, property := range configuration.Spec.DiscoveryHandler.DiscoveryProperties {
		reference, _, found := referenceOf(configuration, property)
		if !found {
			continue
		}
		if reference.Namespace != configuration.Namespace && !crossNamespace {
			return nil, fmt.Errorf("%s: %s lies in another namespace: copy it to namespace %s, or have the operator run the agents with --allow-cross-namespace-properties",
				path(i, property), reference, configuration.Namespace)
		}
		wanted[reference] = true
	}
	return wanted, nil
}

// resolve reads the properties from what the references were found to hold.
func resolve(configuration *v0.Configuration, find func(Reference) Found) Resolved {
	resolved := Resolved{Properties: map[string]*protocol.ByteData{}}
	for i, property := range configuration.Spec.DiscoveryHandler.DiscoveryProperties {
		if property.Value != nil {
			resolved.Properties[property.Name] = &protocol.ByteData{Vec: []byte(*property.Value)}
			continue
		}
		reference, key, isReference := referenceOf(configuration, property)
		if !isReference {
			resolved.Properties[property.Name] = &protocol.ByteData{} // named without a value
			continue
		}
		found := find(reference)
		value, hasKey := found.Values[key.Key]
		switch {
		case found.Err != nil:
			return Resolved{Err: fmt.Errorf("%s: %s cannot be read: %w", path(i, property), reference, found.Err)}
		case found.Pending:
			resolved.Pending = true
		case hasKey:
			resolved.Properties[property.Name] = &protocol.ByteData{Vec: append([]byte{}, value...)}
		case key.Optional:
		case found.Values == nil:
			return Resolved{Err: fmt.Errorf("%s: %s does not exist: create it, or set optional: true", path(i, property), reference)}
		default:
			return Resolved{Err: fmt.Errorf("%s: %s has no key %q: add it, or set optional: true", path(i, property), reference, key.Key)}
		}
	}
	return resolved
}

func referenceOf(configuration *v0.Configuration, property v0.DiscoveryProperty) (Reference, v0.KeyReference, bool) {
	source := property.ValueFrom
	if property.Value != nil || source == nil {
		return Reference{}, v0.KeyReference{}, false
	}
	kind, key := Secret, source.SecretKeyRef
	if key == nil {
		kind, key = ConfigMap, source.ConfigMapKeyRef
	}
	if key == nil {
		return Reference{}, v0.KeyReference{}, false
	}
	namespace := key.Namespace
	if namespace == "" {
		namespace = configuration.Namespace
	}
	return Reference{kind, types.NamespacedName{Namespace: namespace, Name: key.Name}}, *key, true
}

func path(i int, property v0.DiscoveryProperty) string {
	return fmt.Sprintf("discoveryProperties[%d] (%s)", i, property.Name)
}
