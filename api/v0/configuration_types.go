package v0

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Configuration defines which devices to discover, how many containers may use each
// of them, and which Kubernetes objects to create for each device and for all of them.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=configurations,singular=configuration,scope=Namespaced,shortName=akric,categories=all
// +kubebuilder:printcolumn:name="Handler",type=string,JSONPath=`.spec.discoveryHandler.name`
// +kubebuilder:printcolumn:name="Capacity",type=integer,JSONPath=`.spec.capacity`
// +kubebuilder:printcolumn:name="Found",type=integer,JSONPath=`.status.instances`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyInstances`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:optionalOldSelf=true,rule="oldSelf.hasValue() || self.metadata.name.size() <= 56 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must consist of at most 56 characters a-z, 0-9 and '-', and start and end with a letter or digit: it is part of the resource name akri.sh/NAME-HASH, which Kubernetes limits to 63 characters"
type Configuration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	Spec ConfigurationSpec `json:"spec"`
	// status is the observed state. Until the controller has written it,
	// observedGeneration differs from the generation, so that clients wait.
	// +kubebuilder:default:={"observedGeneration":-1}
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

// Active reports whether a Configuration takes effect: agents discover its devices,
// and the controller renders its templates. A Configuration that does not exist (nil)
// or is being deleted does not, for as long as finalizers keep it. Its existing objects
// go with their owners.
func Active(configuration *Configuration) bool {
	return configuration != nil && configuration.DeletionTimestamp.IsZero()
}

// ConfigurationSpec is the desired state of a Configuration.
//
// +kubebuilder:validation:XValidation:rule="!has(self.brokerSpec) || !has(self.instanceBrokerResources) || self.instanceBrokerResources.size() == 0",message="brokerSpec and instanceBrokerResources are mutually exclusive: write the broker's Pod or Job as an entry of instanceBrokerResources"
type ConfigurationSpec struct {
	// discoveryHandler selects the discovery handler that finds the devices, and
	// configures it.
	DiscoveryHandler DiscoveryHandler `json:"discoveryHandler"`

	// capacity is the number of containers, on all nodes, that may use a device at
	// the same time.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Capacity int32 `json:"capacity,omitempty"`

	// brokerProperties are passed to every container that uses a device, in addition
	// to the device's own properties, which they override.
	// +kubebuilder:validation:MaxProperties=500
	// +kubebuilder:validation:XValidation:rule="self.all(name, size(name) <= 253 && size(self[name]) <= 8192)",message="the name of a property has at most 253 characters, and its value at most 8192"
	// +kubebuilder:validation:XValidation:rule="self.map(name, size(name) + size(self[name])).sum() <= 16384",message="all names and values together have at most 16384 characters: put large values into a ConfigMap or Secret that the broker mounts"
	// +optional
	BrokerProperties map[string]string `json:"brokerProperties,omitempty"`

	// displayName is what people call a device: a text with expressions, such as
	// "{{ INSTANCE_PROPERTIES.ROOM }}, {{ INSTANCE_PROPERTIES.MODEL }}". By default, the
	// discovery handler says it.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	DisplayName string `json:"displayName,omitempty"`

	// instanceBrokerResources are templates of Kubernetes objects of any kind. The
	// objects are created for every device.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	InstanceBrokerResources []BrokerResource `json:"instanceBrokerResources,omitempty"`

	// configurationBrokerResources are templates of Kubernetes objects of any kind.
	// The objects are created once, and exist while there is at least one device.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	ConfigurationBrokerResources []BrokerResource `json:"configurationBrokerResources,omitempty"`

	// sampleProperties are the properties of a sample device. The admission webhook
	// and kubectl akri render the templates with them if there is no device yet.
	// +kubebuilder:validation:MaxProperties=500
	// +kubebuilder:validation:XValidation:rule="self.all(name, size(name) <= 253 && size(self[name]) <= 8192)",message="the name of a property has at most 253 characters, and its value at most 8192"
	// +kubebuilder:validation:XValidation:rule="self.map(name, size(name) + size(self[name])).sum() <= 16384",message="all names and values together have at most 16384 characters: put large values into a ConfigMap or Secret that the broker mounts"
	// +optional
	SampleProperties map[string]string `json:"sampleProperties,omitempty"`

	// serviceAccountName is the name of a ServiceAccount in the same namespace. The
	// controller creates, updates and deletes the objects with its permissions
	// instead of its own.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// rollout configures how a change of the templates is rolled out to the devices.
	// +optional
	Rollout *Rollout `json:"rollout,omitempty"`

	// brokerSpec is a Pod or a Job to create for every device, as in the original
	// Akri. instanceBrokerResources is more general.
	// +optional
	BrokerSpec *BrokerSpec `json:"brokerSpec,omitempty"`

	// instanceServiceSpec is the spec of a v1 Service to create for every device, as
	// in the original Akri. instanceBrokerResources is more general.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +nullable
	// +optional
	InstanceServiceSpec *runtime.RawExtension `json:"instanceServiceSpec,omitempty"`

	// configurationServiceSpec is the spec of a v1 Service to create once for all
	// devices, as in the original Akri. configurationBrokerResources is more general.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +nullable
	// +optional
	ConfigurationServiceSpec *runtime.RawExtension `json:"configurationServiceSpec,omitempty"`
}

// Rollout configures how a change of the templates is rolled out to the devices.
type Rollout struct {
	// maxUnavailable is the maximum number of Instances that may be not ready
	// during the rollout: an absolute number, or a percentage of all Instances
	// (rounded down, at least one). The other Instances wait until the updated ones
	// are ready. Instances that were not ready before the rollout count too, and are
	// updated at once. By default, all Instances are updated at once.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : self.matches('^([1-9][0-9]?|100)%$')",message="maxUnavailable must be an integer of at least 1, or a percentage from 1% to 100%"
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// DiscoveryHandler selects and configures a discovery handler.
type DiscoveryHandler struct {
	// name that the handler registers with the agents.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// discoveryDetails is passed to the handler unchanged. Its format, usually YAML,
	// is defined by the handler.
	// +kubebuilder:validation:MaxLength=262144
	// +optional
	DiscoveryDetails string `json:"discoveryDetails,omitempty"`

	// gracePeriodSeconds is how long a device is kept after the connection to its
	// handler was lost: 300 seconds by default if several nodes can reach the device,
	// otherwise 90 seconds, and at least 30. No new container gets it after 30 seconds.
	// If set, it also holds for a device of one node that its handler no longer finds.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=604800
	// +optional
	GracePeriodSeconds *int32 `json:"gracePeriodSeconds,omitempty"`

	// discoveryProperties are named values for the handler, such as credentials.
	// They may be taken from Secrets and ConfigMaps. Their names differ.
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:XValidation:rule="self.all(p, self.exists_one(q, q.name == p.name))",message="two properties have the same name: remove one"
	// +kubebuilder:validation:XValidation:rule="self.map(p, has(p.value) ? size(bytes(p.value)) : 0).sum() <= 65536",message="all values together have at most 65536 bytes: use several Configurations"
	// +listType=atomic
	// +nullable
	// +optional
	DiscoveryProperties []DiscoveryProperty `json:"discoveryProperties,omitempty"`
}

// DiscoveryProperty is a named value for a discovery handler.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.value) && has(self.valueFrom))",message="set value or valueFrom, not both"
type DiscoveryProperty struct {
	// name of the property.
	// +kubebuilder:validation:Pattern=`^[_A-Za-z][_A-Za-z0-9]*$`
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// value of the property.
	// +kubebuilder:validation:MaxLength=8192
	// +nullable
	// +optional
	Value *string `json:"value,omitempty"`
	// valueFrom is the source of the value. It cannot be combined with value.
	// +optional
	ValueFrom *DiscoveryPropertySource `json:"valueFrom,omitempty"`
}

// DiscoveryPropertySource is the source of a value. Exactly one field must be set.
//
// +kubebuilder:validation:XValidation:rule="has(self.secretKeyRef) != has(self.configMapKeyRef)",message="set exactly one of secretKeyRef and configMapKeyRef"
type DiscoveryPropertySource struct {
	// secretKeyRef selects a key of a Secret.
	// +optional
	SecretKeyRef *KeyReference `json:"secretKeyRef,omitempty"`
	// configMapKeyRef selects a key of a ConfigMap, in data or binaryData.
	// +optional
	ConfigMapKeyRef *KeyReference `json:"configMapKeyRef,omitempty"`
}

// KeyReference selects a key of a Secret or ConfigMap.
type KeyReference struct {
	// name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// key of the value in the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
	// namespace of the object. Defaults to the namespace of the Configuration.
	// Another namespace is only allowed if the agents run with
	// --allow-cross-namespace-properties.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// optional allows the object or the key to be missing. The property is then
	// omitted. Otherwise, discovery fails.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// BrokerSpec is a Pod or a Job to create for every device.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.brokerPodSpec) && has(self.brokerJobSpec))",message="set brokerPodSpec or brokerJobSpec, not both"
type BrokerSpec struct {
	// brokerPodSpec is the spec of a v1 Pod to run on every node that sees the device.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +nullable
	// +optional
	BrokerPodSpec *runtime.RawExtension `json:"brokerPodSpec,omitempty"`
	// brokerJobSpec is the spec of a batch/v1 Job to run once for every device.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +nullable
	// +optional
	BrokerJobSpec *runtime.RawExtension `json:"brokerJobSpec,omitempty"`
}
