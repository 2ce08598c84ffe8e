package v0

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// BrokerResource is the template of one Kubernetes object. Its strings and map
// keys may hold expressions such as {{INSTANCE_NAME}}; see docs/templating.md.
//
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:validation:XValidation:rule="!has(self.status)",message="status is written by the kind's own controller and may not be part of a template: remove it"
type BrokerResource struct {
	// The fields with a JSON name are what the schema checks before anything is
	// rendered; Object below holds all of it and is what counts.

	// apiVersion of the object; no expressions.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[^{}]+$`
	APIVersion string `json:"apiVersion"`
	// kind of the object; no expressions.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[^{}]+$`
	Kind string `json:"kind"`
	// metadata of the object: name is required and may hold expressions.
	Metadata BrokerMetadata `json:"metadata"`
	// status is refused.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Status *runtime.RawExtension `json:"status,omitempty"`

	// Object is the template as written: maps, slices, strings, int64, float64,
	// bool and nil. It is shared by shallow copies and must not be changed.
	Object map[string]any `json:"-"`
}

// BrokerMetadata is the part of a template's metadata that the schema checks.
//
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:validation:XValidation:rule="!has(self.generateName)",message="generateName is refused, since the object could not be found again: write a name, such as {{INSTANCE_NAME}}-pod"
type BrokerMetadata struct {
	// name of the object; may hold expressions.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8192
	Name string `json:"name"`
	// namespace of the object; no expressions. The Configuration's own if not
	// set.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[^{}]*$`
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// generateName is refused.
	// +kubebuilder:validation:MaxLength=8192
	// +optional
	GenerateName *string `json:"generateName,omitempty"`
}

// UnmarshalJSON keeps the whole template in Object.
func (r *BrokerResource) UnmarshalJSON(data []byte) error {
	*r = BrokerResource{}
	if bytes.Equal(bytes.TrimSpace(data), []byte("null")) {
		return nil
	}
	if err := utiljson.Unmarshal(data, &r.Object); err != nil { // whole numbers become int64
		return fmt.Errorf("broker resource: %w", err)
	}
	type schema BrokerResource // without this method
	var known schema
	if err := json.Unmarshal(data, &known); err != nil {
		return fmt.Errorf("broker resource: %w", err)
	}
	r.APIVersion, r.Kind, r.Metadata, r.Status = known.APIVersion, known.Kind, known.Metadata, known.Status
	return nil
}

// MarshalJSON writes Object.
func (r BrokerResource) MarshalJSON() ([]byte, error) {
	return json.Marshal(r.Object)
}

// DeepCopyInto copies the template, Object included.
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
}
