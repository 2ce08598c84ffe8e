package v0

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition types. Both kinds have Applied and Ready.
const (
	// ConditionAccepted means that the templates of a Configuration compile and
	// contain only allowed kinds.
	ConditionAccepted = "Accepted"
	// ConditionDiscovering means that no agent reports a discovery failure of a
	// Configuration.
	ConditionDiscovering = "Discovering"
	// ConditionApplied means that all objects are applied as rendered, and that
	// objects that are no longer rendered are deleted.
	ConditionApplied = "Applied"
	// ConditionReady means that all objects are applied and ready by the standard of
	// their kind. On a Configuration, this includes all its Instances.
	ConditionReady = "Ready"
	// ConditionStalled exists, and is True, while the templates of a Configuration are not
	// accepted: nothing changes until somebody corrects them. The name is that of kstatus,
	// which then reports Failed.
	ConditionStalled = "Stalled"
)

// Condition reasons. Those of Applied=False name the problem to fix.
const (
	ReasonAccepted              = "Accepted"
	ReasonApplied               = "Applied"
	ReasonReady                 = "Ready"
	ReasonDiscovering           = "Discovering"
	ReasonPending               = "Pending"               // the controller has not written the status yet
	ReasonNoInstances           = "NoInstances"           // no device was found
	ReasonDiscoveryFailed       = "DiscoveryFailed"       // see status.discoveryFailures
	ReasonHandlerMissing        = "HandlerMissing"        // no node is known to have the discovery handler
	ReasonInvalidTemplate       = "InvalidTemplate"       // a template does not compile
	ReasonRenderFailed          = "RenderFailed"          // an expression fails for this device
	ReasonRefused               = "Refused"               // the kind or the namespace is not allowed
	ReasonKindUnavailable       = "KindUnavailable"       // the API server does not serve the kind
	ReasonForbidden             = "Forbidden"             // the controller lacks a permission
	ReasonQuotaExceeded         = "QuotaExceeded"         // a ResourceQuota does not admit the object
	ReasonLimitRangeViolated    = "LimitRangeViolated"    // a LimitRange does not admit the object
	ReasonPodSecurityViolated   = "PodSecurityViolated"   // the Pod Security level of the namespace does not admit the Pod
	ReasonPolicyDenied          = "PolicyDenied"          // a ValidatingAdmissionPolicy denies the request
	ReasonWebhookDenied         = "WebhookDenied"         // an admission webhook denies the request
	ReasonReferenceMissing      = "ReferenceMissing"      // the object names one that does not exist
	ReasonNamespaceTerminating  = "NamespaceTerminating"  // the namespace is being deleted
	ReasonWatchFailed           = "WatchFailed"           // the controller cannot see changes of the kind's objects
	ReasonConflict              = "Conflict"              // the object has another owner
	ReasonImmutable             = "Immutable"             // the API server does not allow a field to change
	ReasonApplyFailed           = "ApplyFailed"           // the API server rejected the object
	ReasonDeleteFailed          = "DeleteFailed"          // an object could not be deleted
	ReasonContended             = "Contended"             // another client keeps changing an object back
	ReasonRolloutWaiting        = "RolloutWaiting"        // the Instance waits for its turn in a rollout
	ReasonProgressing           = "Progressing"           // an object is not ready yet
	ReasonConfigurationNotFound = "ConfigurationNotFound" // the Instance's Configuration does not exist
	ReasonInstancesFailing      = "InstancesFailing"      // at least one Instance is not applied

	ReasonServerUnavailable = "ServerUnavailable" // the API server has not answered for a while
)

// ConfigurationStatus is the observed state of a Configuration.
type ConfigurationStatus struct {
	// observedGeneration is the generation of the spec that this status refers to.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// instances is the number of devices.
	// +optional
	Instances int32 `json:"instances,omitempty"`
	// readyInstances is the number of devices whose objects are all ready.
	// +optional
	ReadyInstances int32 `json:"readyInstances,omitempty"`
	// failingInstances is the number of devices with an object that could not be
	// applied.
	// +optional
	FailingInstances int32 `json:"failingInstances,omitempty"`

	// conditions of the Configuration: Accepted, Discovering, Applied and Ready, and
	// Stalled while the templates are not accepted.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// resources are the objects created from configurationBrokerResources.
	// +kubebuilder:validation:MaxItems=2000
	// +listType=atomic
	// +optional
	Resources []ResourceStatus `json:"resources,omitempty"`

	// discoveryFailures lists nodes on which discovery fails, and why. Each agent owns
	// the entries of its node. If there are 50 entries, there may be further nodes.
	// +kubebuilder:validation:MaxItems=50
	// +listType=map
	// +listMapKey=node
	// +listMapKey=handler
	// +optional
	DiscoveryFailures []DiscoveryFailure `json:"discoveryFailures,omitempty"`
}

// DiscoveryFailure is a failure of discovery on one node.
type DiscoveryFailure struct {
	// node whose agent reports the failure.
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node"`
	// handler is the name of the discovery handler, with its endpoint if known: NAME
	// or NAME@ENDPOINT.
	// +kubebuilder:validation:MaxLength=512
	Handler string `json:"handler"`
	// message describes the failure and its remedy.
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message"`
}

// MessageHandlerMissing is the message of an agent on whose node the discovery handler is
// not registered.
const MessageHandlerMissing = "no discovery handler with this name has registered on this node"

// HandlerMissing reports whether the failure is that the node does not have the handler.
func (f DiscoveryFailure) HandlerMissing() bool { return f.Message == MessageHandlerMissing }

// InstanceStatus is the observed state of the objects created for a device. It has no
// observedGeneration, because the generation of an Instance changes whenever a slot does.
type InstanceStatus struct {
	// displayName tells people which device it is: one line, by spec.displayName of the
	// Configuration, or else by the discovery handler.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	DisplayName string `json:"displayName,omitempty"`
	// freeSlots is the number of slots that no container has, as it was some seconds ago.
	// Schedulers and agents count the slots themselves.
	// +optional
	FreeSlots *int32 `json:"freeSlots,omitempty"`

	// conditions of the Instance: Applied and Ready.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// resources are the objects created from instanceBrokerResources for this device.
	// +kubebuilder:validation:MaxItems=2000
	// +listType=atomic
	// +optional
	Resources []ResourceStatus `json:"resources,omitempty"`
}

// ResourceStatus is an object created from a template. The list of them is the
// inventory: its objects are pruned if no template renders them any longer.
type ResourceStatus struct {
	// group of the kind. Empty for the core group.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Group string `json:"group,omitempty"`
	// version with which the object was applied.
	// +kubebuilder:validation:MaxLength=63
	Version string `json:"version"`
	// kind of the object.
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// namespace of the object. Empty for a cluster-scoped object.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the object.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// uid of the object, to distinguish it from a later one of the same name. Empty
	// if it could not be applied yet.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	UID string `json:"uid,omitempty"`
	// hash of the object as rendered and last applied.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Hash string `json:"hash,omitempty"`
	// managedFieldsHash is a hash of the set of fields that the controller owned after
	// the last apply. A client that changes one of them removes it from the set, so
	// equal hashes mean that the object is unchanged.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	ManagedFieldsHash string `json:"managedFieldsHash,omitempty"`
	// orphan is true if the object is not deleted when it is no longer rendered.
	// +optional
	Orphan bool `json:"orphan,omitempty"`
	// template is the index of the template in the list of broker resources.
	Template int32 `json:"template"`
	// ready is true if the object is ready by the standard of its kind.
	// +optional
	Ready bool `json:"ready,omitempty"`
	// reason why the object is not ready.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Reason string `json:"reason,omitempty"`
}
