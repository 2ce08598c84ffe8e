package v0

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Instance is a discovered device. Agents create and delete Instances.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=instances,singular=instance,scope=Namespaced,shortName=akrii,categories=all
// +kubebuilder:printcolumn:name="Device",type=string,JSONPath=`.status.displayName`
// +kubebuilder:printcolumn:name="Nodes",type=string,JSONPath=`.spec.nodes`
// +kubebuilder:printcolumn:name="Free",type=integer,JSONPath=`.status.freeSlots`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Config",type=string,priority=1,JSONPath=`.spec.configurationName`
// +kubebuilder:printcolumn:name="Capacity",type=integer,priority=1,JSONPath=`.spec.capacity`
// +kubebuilder:printcolumn:name="Shared",type=boolean,priority=1,JSONPath=`.spec.shared`
// +kubebuilder:printcolumn:name="Changed",type=date,priority=1,JSONPath=`.spec.lastChangeTime`
// +kubebuilder:validation:XValidation:optionalOldSelf=true,rule="oldSelf.hasValue() || self.metadata.name.size() <= 63 && self.metadata.name.startsWith(self.spec.configurationName + '-')",message="metadata.name must have at most 63 characters and begin with spec.configurationName and a dash: it is part of a resource name, and agents name Instances CONFIGURATION-HASH"
type Instance struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec describes the device as the agents see it.
	Spec InstanceSpec `json:"spec"`
	// status is the observed state of the objects created for the device. Until the
	// controller has written it, the condition Ready is Unknown, so that clients wait.
	// +kubebuilder:default:={"conditions":{{"type":"Ready","status":"Unknown","reason":"Pending","message":"not reconciled yet","lastTransitionTime":"1970-01-01T00:00:00Z"}}}
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

// InstanceSpec describes a device as the agents see it.
//
// +kubebuilder:validation:XValidation:rule="self.configurationName == oldSelf.configurationName",message="configurationName never changes: the name of the Instance begins with it"
// +kubebuilder:validation:XValidation:rule="!has(self.deviceUsage) || !has(oldSelf.deviceUsage) || self.deviceUsage.all(slot, size(self.deviceUsage[slot]) == 0 || !(slot in oldSelf.deviceUsage) || size(oldSelf.deviceUsage[slot]) == 0 || oldSelf.deviceUsage[slot] == self.deviceUsage[slot])",message="a slot of deviceUsage must be free (absent or \"\") before it gets another owner"
type InstanceSpec struct {
	// configurationName is the name of the Configuration that the device was
	// discovered for.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ConfigurationName string `json:"configurationName"`

	// cdiName is the Container Device Interface name of the device:
	// akri.sh/CONFIGURATION=HASH.
	// +kubebuilder:validation:MaxLength=253
	CDIName string `json:"cdiName"`

	// capacity is the number of containers that may use the device at the same
	// time, as set in the Configuration.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Capacity int32 `json:"capacity"`

	// brokerProperties are the properties of the device, overridden by those of the
	// Configuration.
	// +kubebuilder:validation:MaxProperties=1000
	// +kubebuilder:validation:XValidation:rule="self.all(name, size(name) <= 253 && size(self[name]) <= 8192)",message="the name of a property has at most 253 characters, and its value at most 8192"
	// +kubebuilder:validation:XValidation:rule="self.map(name, size(name) + size(self[name])).sum() <= 32768",message="all names and values together have at most 32768 characters: put large values into a ConfigMap or Secret that the broker mounts"
	// +kubebuilder:default={}
	// +optional
	BrokerProperties map[string]string `json:"brokerProperties,omitempty"`

	// lastChangeTime is when an agent last saw the properties of the device change, or first
	// saw the device.
	// +optional
	LastChangeTime *metav1.Time `json:"lastChangeTime,omitempty"`

	// shared is true if several nodes can reach the device.
	// +kubebuilder:default=false
	// +optional
	Shared bool `json:"shared,omitempty"`

	// nodes are the names of the nodes that see the device. Each agent writes the entry
	// of its node. The agent of the first one describes the device.
	// +kubebuilder:validation:MaxItems=5000
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +kubebuilder:default={}
	// +optional
	Nodes []string `json:"nodes,omitempty"`

	// deviceUsage maps each slot in use to its owner: NODE, or C:VIRTUALID:NODE if it
	// was allocated through the Configuration's resource. A slot without an entry is
	// free, and so is one with the owner "".
	// +kubebuilder:validation:MaxProperties=1000
	// +mapType=granular
	// +kubebuilder:default={}
	// +optional
	DeviceUsage map[string]SlotOwner `json:"deviceUsage,omitempty"`
}

// SlotOwner is the owner of a slot. [ParseOwner] parses it.
//
// +kubebuilder:validation:MaxLength=512
type SlotOwner string
