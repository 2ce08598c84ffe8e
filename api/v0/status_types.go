package v0

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition types. Both kinds have Applied and Ready.
const (
	// ConditionAccepted on a Configuration: its templates compile and ask for
	// nothing that is refused.
	ConditionAccepted = "Accepted"
	// ConditionDiscovering on a Configuration: no agent reports a failure of
	// its discovery.
	ConditionDiscovering = "Discovering"
	// ConditionApplied: the objects asked for are in the API server as
	// rendered, and those no longer asked for are gone.
	ConditionApplied = "Applied"
	// ConditionReady: Applied, and every object is ready by its own standard.
	// On a Configuration this includes all its Instances.
	ConditionReady = "Ready"
)

// Condition reasons. Those of Applied=False name what has to be mended.
const (
	ReasonAccepted         = "Accepted"
	ReasonApplied          = "Applied"
	ReasonReady            = "Ready"
	ReasonDiscovering      = "Discovering"
	ReasonNoInstances      = "NoInstances"      // no device was found, so nothing has to exist
	ReasonDiscoveryFailed  = "DiscoveryFailed"  // see status.discoveryFailures
	ReasonInvalidTemplate  = "InvalidTemplate"  // a template does not compile
	ReasonRenderFailed     = "RenderFailed"     // an expression failed for this device
	ReasonRefused          = "Refused"          // the kind or the namespace is not allowed
	ReasonKindUnavailable  = "KindUnavailable"  // the API server does not know the kind
	ReasonForbidden        = "Forbidden"        // the controller lacks a right
	ReasonConflict         = "Conflict"         // the object belongs to somebody else
	ReasonImmutable        = "Immutable"        // the API server refuses to change a field
	ReasonApplyFailed      = "ApplyFailed"      // the API server refused the object
	ReasonDeleteFailed     = "DeleteFailed"     // an object no longer wanted is still there
	ReasonContested        = "Contested"        // somebody else keeps changing an object back
	ReasonRolloutWaiting   = "RolloutWaiting"   // a change of the templates has to wait its turn
	ReasonProgressing      = "Progressing"      // an object is not ready yet
	ReasonUnknownOwner     = "UnknownOwner"     // the Instance's Configuration does not exist
	ReasonInstancesFailing = "InstancesFailing" // at least one Instance is not applied
)

// ConfigurationStatus is what came of a Configuration.
type ConfigurationStatus struct {
	// observedGeneration is the generation of the spec that this status is
	// about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// instances is how many devices there are.
	// +optional
	Instances int32 `json:"instances,omitempty"`
	// readyInstances is for how many of them all objects are ready.
	// +optional
	ReadyInstances int32 `json:"readyInstances,omitempty"`
	// failingInstances is for how many of them an object could not be applied.
	// +optional
	FailingInstances int32 `json:"failingInstances,omitempty"`

	// conditions are Accepted, Discovering, Applied and Ready.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// resources are the objects made from configurationBrokerResources.
	// +listType=atomic
	// +optional
	Resources []ResourceStatus `json:"resources,omitempty"`

	// discoveryFailures says on which nodes the discovery fails, and why. Each
	// agent writes its own entries.
	// +listType=map
	// +listMapKey=node
	// +listMapKey=handler
	// +optional
	DiscoveryFailures []DiscoveryFailure `json:"discoveryFailures,omitempty"`
}

// DiscoveryFailure is a discovery that does not work on one node.
type DiscoveryFailure struct {
	// node whose agent reports it.
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node"`
	// handler is the discovery handler's name, with its endpoint if there is
	// one: NAME or NAME@ENDPOINT.
	// +kubebuilder:validation:MaxLength=512
	Handler string `json:"handler"`
	// message says what is wrong and what to do.
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message"`
}

// InstanceStatus is what the controller made of a device.
type InstanceStatus struct {
	// observedGeneration is the generation of the spec that this status is
	// about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Applied and Ready.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// resources are the objects made from instanceBrokerResources for this
	// device.
	// +listType=atomic
	// +optional
	Resources []ResourceStatus `json:"resources,omitempty"`
}

// ResourceStatus is one object that exists because of a template. The list of
// them is the inventory: what is in it is pruned when it is no longer wanted.
type ResourceStatus struct {
	// group of the kind; empty for Kubernetes' core kinds.
	// +optional
	Group string `json:"group,omitempty"`
	// version by which the object was applied.
	Version string `json:"version"`
	// kind of the object.
	Kind string `json:"kind"`
	// namespace of the object; empty for a cluster-scoped one.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the object.
	Name string `json:"name"`
	// uid tells the object from a later one of the same name; empty while it
	// could not be applied.
	// +optional
	UID string `json:"uid,omitempty"`
	// intent is a digest of the object as it was rendered and last applied.
	// +optional
	Intent string `json:"intent,omitempty"`
	// fields is a digest of the set of fields that the controller owned after
	// that. Who changes one of them takes it out of the set, so equal digests
	// mean that the object is still as rendered.
	// +optional
	Fields string `json:"fields,omitempty"`
	// orphan: the object is left alone when it is no longer wanted.
	// +optional
	Orphan bool `json:"orphan,omitempty"`
	// template is the index in the list of broker resources.
	Template int32 `json:"template"`
	// ready tells whether the object is ready by its kind's standard.
	// +optional
	Ready bool `json:"ready,omitempty"`
	// reason why it is not ready, in a few words.
	// +optional
	Reason string `json:"reason,omitempty"`
}
