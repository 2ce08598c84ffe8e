package v0

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Instance is one device that was found. Agents make and remove Instances;
// people read them.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=instances,singular=instance,scope=Namespaced,shortName=akrii,categories=all
// +kubebuilder:printcolumn:name="Config",type=string,JSONPath=`.spec.configurationName`
// +kubebuilder:printcolumn:name="Shared",type=boolean,JSONPath=`.spec.shared`
// +kubebuilder:printcolumn:name="Nodes",type=string,JSONPath=`.spec.nodes`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Instance struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the agents know of the device.
	Spec InstanceSpec `json:"spec"`
	// status is what the controller made of it.
	// +optional
	Status InstanceStatus `json:"status,omitempty"`
}

// InstanceList is a list of Instances.
//
// +kubebuilder:object:root=true
type InstanceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Instance `json:"items"`
}

// InstanceSpec is what the agents know of a device.
//
// +kubebuilder:validation:XValidation:rule="!has(self.deviceUsage) || !has(oldSelf.deviceUsage) || self.deviceUsage.all(slot, size(self.deviceUsage[slot]) == 0 || !(slot in oldSelf.deviceUsage) || size(oldSelf.deviceUsage[slot]) == 0 || oldSelf.deviceUsage[slot] == self.deviceUsage[slot])",message="a slot of deviceUsage changes its owner only by way of \"\" (free)"
type InstanceSpec struct {
	// configurationName is the Configuration by which the device was found.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ConfigurationName string `json:"configurationName"`

	// cdiName is akri.sh/CONFIGURATION=HASH.
	// +kubebuilder:validation:MaxLength=253
	CDIName string `json:"cdiName"`

	// capacity is the Configuration's: how many containers may use the device.
	// +kubebuilder:validation:Minimum=0
	Capacity int32 `json:"capacity"`

	// brokerProperties are the device's properties overlaid by the
	// Configuration's.
	// +optional
	BrokerProperties map[string]string `json:"brokerProperties,omitempty"`

	// shared tells whether several nodes can reach the device.
	// +optional
	Shared bool `json:"shared,omitempty"`

	// nodes that see the device. Each agent owns its own entry.
	// +listType=set
	// +optional
	Nodes []string `json:"nodes,omitempty"`

	// deviceUsage says who holds which slot: SLOT → "" (free, as is a slot
	// without entry), NODE, or C:VIRTUALID:NODE when it is held through the
	// Configuration's resource.
	// +kubebuilder:validation:MaxProperties=1000
	// +mapType=granular
	// +optional
	DeviceUsage map[string]SlotOwner `json:"deviceUsage,omitempty"`
}

// SlotOwner is a value of deviceUsage; [ParseOwner] reads it.
//
// +kubebuilder:validation:MaxLength=512
type SlotOwner string
