package v0

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// BrokerResource is a template of a Kubernetes object. Its strings and map keys may
// contain expressions such as {{INSTANCE_NAME}}; see docs/templating.md.
//
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:validation:XValidation:rule="!has(self.status)",message="status is written by the controller of the kind and must not be set by a template: remove it"
type BrokerResource struct {
	// The schema validates the fields with a JSON name. Object holds the complete
	// template, from which objects are rendered.

	// apiVersion of the object: GROUP/VERSION, or v1 for the core group. Expressions
	// are not allowed.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^(v[0-9]+((alpha|beta)[0-9]+)?|[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/[a-z]([-a-z0-9]*[a-z0-9])?)$`
	APIVersion string `json:"apiVersion"`
	// kind of the object. Expressions are not allowed.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$`
	Kind string `json:"kind"`
	// metadata of the object. The name is required and may contain expressions.
	Metadata BrokerMetadata `json:"metadata"`
	// status must not be set.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Status *runtime.RawExtension `json:"status,omitempty"`

	// Object is the complete template as unstructured content. Shallow copies share it,
	// so it must not be modified.
	Object map[string]any `json:"-"`
	// Packed is the template as JSON while Object is nil: see Pack.
	Packed []byte `json:"-"`
}

// BrokerMetadata is the part of a template's metadata that the schema validates.
//
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:validation:XValidation:rule="!has(self.generateName)",message="generateName is not supported, because the object could not be found again: set a name, such as {{INSTANCE_NAME}}-pod"
type BrokerMetadata struct {
	// name of the object. It may contain expressions.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8192
	Name string `json:"name"`
	// namespace of the object. Defaults to the namespace of the Configuration.
	// Expressions are not allowed.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// generateName must not be set.
	// +kubebuilder:validation:MaxLength=8192
	// +optional
	GenerateName *string `json:"generateName,omitempty"`
}

// UnmarshalJSON stores the complete template in Object.
func (r *BrokerResource) UnmarshalJSON(data []byte) error {
	*r = BrokerResource{}
	if bytes.Equal(bytes.TrimSpace(data), []byte("null")) {
		return nil
	}
	if err := utiljson.Unmarshal(data, &r.Object); err != nil { // integers become int64
		return fmt.Errorf("broker resource: %w", err)
	}
	type schema BrokerResource // without UnmarshalJSON
	var known schema
	if err := json.Unmarshal(data, &known); err != nil {
		return fmt.Errorf("broker resource: %w", err)
	}
	r.APIVersion, r.Kind, r.Metadata, r.Status = known.APIVersion, known.Kind, known.Metadata, known.Status
	return nil
}

// Pack replaces Object by its JSON, which takes up to forty times less memory. Caches keep
// packed templates.
func (r *BrokerResource) Pack() error {
	if r.Object == nil {
		return nil
	}
	packed, err := json.Marshal(r.Object)
	if err != nil {
		return fmt.Errorf("broker resource: %w", err)
	}
	r.Object, r.Packed, r.Status = nil, packed, nil
	return nil
}

// Content returns the complete template, whether or not it is packed. It must not be
// modified.
func (r *BrokerResource) Content() (map[string]any, error) {
	if r.Object != nil || r.Packed == nil {
		return r.Object, nil
	}
	var content map[string]any
	if err := utiljson.Unmarshal(r.Packed, &content); err != nil { // integers become int64
		return nil, fmt.Errorf("broker resource: %w", err)
	}
	return content, nil
}

// MarshalJSON writes Object.
func (r BrokerResource) MarshalJSON() ([]byte, error) {
	if r.Object == nil && r.Packed != nil {
		return r.Packed, nil
	}
	return json.Marshal(r.Object)
}

// DeepCopyInto copies the template including Object.
func (r *BrokerResource) DeepCopyInto(out *BrokerResource) {
	*out = *r
	if r.Metadata.GenerateName != nil {
		name := *r.Metadata.GenerateName
		out.Metadata.GenerateName = &name
	}
	if r.Status != nil {
		out.Status = r.Status.DeepCopy()
	}
	out.Object = runtime.DeepCopyJSON(r.Object)
	out.Packed = bytes.Clone(r.Packed)
}
