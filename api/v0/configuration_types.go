package v0

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Configuration says which devices to look for, how many users each may have,
// and which Kubernetes objects should exist for each of them and for the group.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=configurations,singular=configuration,scope=Namespaced,shortName=akric,categories=all
// +kubebuilder:printcolumn:name="Handler",type=string,JSONPath=`.spec.discoveryHandler.name`
// +kubebuilder:printcolumn:name="Capacity",type=integer,JSONPath=`.spec.capacity`
// +kubebuilder:printcolumn:name="Instances",type=integer,JSONPath=`.status.instances`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 56 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be at most 56 characters of a-z, 0-9 and '-', beginning and ending with a letter or digit: it becomes part of the resource name akri.sh/NAME-HASH, which Kubernetes limits to 63"
type Configuration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the operator wants.
	Spec ConfigurationSpec `json:"spec"`
	// status is what came of it.
	// +optional
	Status ConfigurationStatus `json:"status,omitempty"`
}

// ConfigurationList is a list of Configurations.
//
// +kubebuilder:object:root=true
type ConfigurationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Configuration `json:"items"`
}

// ConfigurationSpec is what the operator wants.
//
// +kubebuilder:validation:XValidation:rule="!has(self.brokerSpec) || !has(self.instanceBrokerResources) || self.instanceBrokerResources.size() == 0",message="brokerSpec and instanceBrokerResources exclude each other: write the broker's Pod or Job as an entry of instanceBrokerResources"
type ConfigurationSpec struct {
	// discoveryHandler says which discovery handler finds the devices, and
	// tells it where to look.
	DiscoveryHandler DiscoveryHandler `json:"discoveryHandler"`

	// capacity is how many containers may use one device at the same time, over
	// all nodes.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Capacity int32 `json:"capacity,omitempty"`

	// brokerProperties are given to every container that uses a device, beside
	// the device's own properties; on equal names these win.
	// +kubebuilder:validation:MaxProperties=1000
	// +optional
	BrokerProperties map[string]string `json:"brokerProperties,omitempty"`

	// instanceBrokerResources are templates of Kubernetes objects, of any kind,
	// that should exist once for every device.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	InstanceBrokerResources []BrokerResource `json:"instanceBrokerResources,omitempty"`

	// configurationBrokerResources are templates of Kubernetes objects, of any
	// kind, that should exist once while there is at least one device.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	ConfigurationBrokerResources []BrokerResource `json:"configurationBrokerResources,omitempty"`

	// sampleProperties stand for a device's properties while there is none: the
	// admission webhook and kubectl akri render the templates with them.
	// +kubebuilder:validation:MaxProperties=1000
	// +optional
	SampleProperties map[string]string `json:"sampleProperties,omitempty"`

	// serviceAccountName is a ServiceAccount of this namespace. The objects are
	// made, changed and deleted with its rights instead of the controller's.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// rollout says how a change of the templates reaches the devices.
	// +optional
	Rollout *Rollout `json:"rollout,omitempty"`

	// brokerSpec is Akri's way to ask for a Pod or a Job per device.
	// instanceBrokerResources can say the same and more.
	// +optional
	BrokerSpec *BrokerSpec `json:"brokerSpec,omitempty"`

	// instanceServiceSpec is Akri's way to ask for a Service per device: the
	// spec of a v1 Service.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +nullable
	// +optional
	InstanceServiceSpec *runtime.RawExtension `json:"instanceServiceSpec,omitempty"`

	// configurationServiceSpec is Akri's way to ask for one Service for all
	// devices: the spec of a v1 Service.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +nullable
	// +optional
	ConfigurationServiceSpec *runtime.RawExtension `json:"configurationServiceSpec,omitempty"`
}

// Rollout says how a change of the templates reaches the devices.
type Rollout struct {
	// maxUnavailable is how many Instances may be not ready at once because of
	// the change: a number, or a percentage of all (rounded down, but at least
	// one). The others wait until those before them are ready. Not set: all are
	// changed at once. Instances that are not ready anyway do not wait, and count.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : self.matches('^([1-9][0-9]?|100)%$')",message="maxUnavailable must be a whole number of at least 1, or a percentage from 1% to 100%"
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// DiscoveryHandler names a discovery handler and holds what it is told.
type DiscoveryHandler struct {
	// name under which the handler has registered with the agents.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// discoveryDetails is passed to the handler as it stands; each handler
	// documents what it understands, usually YAML.
	// +kubebuilder:validation:MaxLength=262144
	// +optional
	DiscoveryDetails string `json:"discoveryDetails,omitempty"`

	// discoveryProperties are named values for the handler, such as
	// credentials; they may come from Secrets and ConfigMaps.
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +nullable
	// +optional
	DiscoveryProperties []DiscoveryProperty `json:"discoveryProperties,omitempty"`
}

// DiscoveryProperty is one named value for a discovery handler.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.value) && has(self.valueFrom))",message="set value or valueFrom, not both"
type DiscoveryProperty struct {
	// name of the property.
	// +kubebuilder:validation:Pattern=`^[_A-Za-z][_A-Za-z0-9]*$`
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// value as text.
	// +nullable
	// +optional
	Value *string `json:"value,omitempty"`
	// valueFrom takes the value from a Secret or a ConfigMap.
	// +optional
	ValueFrom *DiscoveryPropertySource `json:"valueFrom,omitempty"`
}

// DiscoveryPropertySource is where a value comes from.
//
// +kubebuilder:validation:XValidation:rule="has(self.secretKeyRef) != has(self.configMapKeyRef)",message="set exactly one of secretKeyRef and configMapKeyRef"
type DiscoveryPropertySource struct {
	// secretKeyRef is a key of a Secret.
	// +optional
	SecretKeyRef *KeyReference `json:"secretKeyRef,omitempty"`
	// configMapKeyRef is a key of a ConfigMap, in data or binaryData.
	// +optional
	ConfigMapKeyRef *KeyReference `json:"configMapKeyRef,omitempty"`
}

// KeyReference is a key of a Secret or ConfigMap.
type KeyReference struct {
	// name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// key in the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
	// namespace of the object: the Configuration's own if not set. Another one
	// is refused unless the agents run with --allow-cross-namespace-properties.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// optional: a missing object or key leaves the property out instead of
	// stopping the discovery.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// BrokerSpec holds a Pod or a Job to run for each device.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.brokerPodSpec) && has(self.brokerJobSpec))",message="set brokerPodSpec or brokerJobSpec, not both"
type BrokerSpec struct {
	// brokerPodSpec is the spec of a v1 Pod, run on every node that sees the
	// device.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +nullable
	// +optional
	BrokerPodSpec *runtime.RawExtension `json:"brokerPodSpec,omitempty"`
	// brokerJobSpec is the spec of a batch/v1 Job, run once for each device.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +nullable
	// +optional
	BrokerJobSpec *runtime.RawExtension `json:"brokerJobSpec,omitempty"`
}
