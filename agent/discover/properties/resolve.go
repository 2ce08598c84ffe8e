package properties

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/discovery/protocol"
)

// kind is the kind of an object with values: Secret or ConfigMap.
type kind string

const (
	secret    kind = "Secret"
	configMap kind = "ConfigMap"
)

// reference names an object that a Configuration refers to.
type reference struct {
	kind kind
	types.NamespacedName
}

func (r reference) String() string { return fmt.Sprintf("%s %s", r.kind, r.NamespacedName) }

// lookup is the result of reading an object.
type lookup struct {
	// values are the object's values that some Configuration refers to; nil if the object
	// does not exist. One that is too long is cut after the first byte too many.
	values map[string][]byte
	// err is the reason why the object could not be read. pending means that it has
	// not been read yet.
	err     error
	pending bool
}

// Resolved are a Configuration's properties, or the reason why there are none.
type Resolved struct {
	Properties map[string]*protocol.ByteData
	// Err names the property, the cause and the remedy.
	Err error
	// Pending means that some objects have not been read yet.
	Pending bool
}

// keySet has names of values in an object.
type keySet map[string]bool

// references returns the objects that a Configuration refers to, with the keys.
func references(configuration *v0.Configuration, crossNamespace bool) (map[reference]keySet, error) {
	wanted := map[reference]keySet{}
	for i, property := range configuration.Spec.DiscoveryHandler.DiscoveryProperties {
		ref, key, found := referenceOf(configuration, property)
		if !found {
			continue
		}
		if ref.Namespace != configuration.Namespace && !crossNamespace {
			return nil, fmt.Errorf(
				"%s: %s is in another namespace: copy it to namespace %s, or run the agents with --allow-cross-namespace-properties",
				path(i, property),
				ref,
				configuration.Namespace,
			)
		}
		if wanted[ref] == nil {
			wanted[ref] = keySet{}
		}
		wanted[ref][key.Key] = true
	}
	return wanted, nil
}

// resolve returns the properties, with the values that find returns.
func resolve(configuration *v0.Configuration, find func(reference) lookup) Resolved {
	resolved := Resolved{Properties: map[string]*protocol.ByteData{}}
	for i, property := range configuration.Spec.DiscoveryHandler.DiscoveryProperties {
		if property.Value != nil {
			resolved.Properties[property.Name] = &protocol.ByteData{Vec: []byte(*property.Value)}
			continue
		}
		ref, key, found := referenceOf(configuration, property)
		if !found {
			resolved.Properties[property.Name] = &protocol.ByteData{} // a name without a value
			continue
		}
		object := find(ref)
		value, hasKey := object.values[key.Key]
		switch {
		case object.err != nil:
			remedy := ""
			if apierrors.IsForbidden(object.err) {
				remedy = fmt.Sprintf(": allow it with kubectl akri rbac -n %s %s | kubectl apply -f -", configuration.Namespace, configuration.Name)
			}
			return Resolved{Err: fmt.Errorf("%s: read %s: %w%s", path(i, property), ref, object.err, remedy)}
		case object.pending:
			resolved.Pending = true
		case len(value) > v0.MaxDiscoveryPropertyLength:
			return Resolved{Err: fmt.Errorf("%s: the value of key %q of %s is too long, the limit is %d bytes: shorten it",
				path(i, property), key.Key, ref, v0.MaxDiscoveryPropertyLength)}
		case hasKey:
			resolved.Properties[property.Name] = &protocol.ByteData{Vec: append([]byte{}, value...)}
		case key.Optional:
		case object.values == nil:
			return Resolved{Err: fmt.Errorf("%s: %s does not exist: create it, or set optional: true", path(i, property), ref)}
		default:
			return Resolved{Err: fmt.Errorf("%s: %s has no key %q: add it, or set optional: true",
				path(i, property), ref, key.Key)}
		}
	}
	sum := 0
	for _, value := range resolved.Properties {
		sum += len(value.Vec)
	}
	if sum > v0.MaxDiscoveryPropertiesLength {
		return Resolved{Err: fmt.Errorf("discoveryProperties: all values together have %d bytes, the limit is %d: use several Configurations",
			sum, v0.MaxDiscoveryPropertiesLength)}
	}
	return resolved
}

// referenceOf returns the object and the key that a property refers to, if any.
func referenceOf(configuration *v0.Configuration, property v0.DiscoveryProperty) (reference, v0.KeyReference, bool) {
	source := property.ValueFrom
	if property.Value != nil || source == nil {
		return reference{}, v0.KeyReference{}, false
	}
	objectKind, key := secret, source.SecretKeyRef
	if key == nil {
		objectKind, key = configMap, source.ConfigMapKeyRef
	}
	if key == nil {
		return reference{}, v0.KeyReference{}, false
	}
	namespace := key.Namespace
	if namespace == "" {
		namespace = configuration.Namespace
	}
	return reference{objectKind, types.NamespacedName{Namespace: namespace, Name: key.Name}}, *key, true
}

func path(i int, property v0.DiscoveryProperty) string {
	return fmt.Sprintf("discoveryProperties[%d] (%s)", i, property.Name)
}
