package v0

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Labels. Keys with the prefix [Domain] are reserved; templates must not set them.
const (
	// Domain is the API group and the prefix of labels, annotations and
	// resource names.
	Domain = "akri.sh"

	// LabelConfiguration holds the name of the Configuration. The controller sets it
	// on every broker resource and on the Pods of built-in workload kinds; agents set
	// it on Instances.
	LabelConfiguration = Domain + "/configuration"

	// LabelInstance holds the name of the Instance. The controller sets it, in
	// addition to LabelConfiguration, on all objects rendered at instance level.
	LabelInstance = Domain + "/instance"

	// LabelLevel with [LevelInstance] is set by the controller wherever it sets
	// LabelInstance. It distinguishes the objects of a Configuration's Instances from
	// those rendered once for the Configuration, which do not have it.
	LabelLevel    = Domain + "/level"
	LevelInstance = "instance"

	// LabelManagedBy with [ManagedBy] marks the objects that the controller applies
	// itself, and not, for example, the Pods of a Deployment among them. The controller
	// watches only marked objects.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// ManagedBy is the value of LabelManagedBy.
	ManagedBy = "akri"

	// LabelNamespace and LabelOwner hold the namespace and the UID of the parent of an
	// object that garbage collection cannot delete with its parent, because it is in
	// another namespace or cluster-scoped. The controller sets them and finds the
	// objects by them.
	LabelNamespace = Domain + "/namespace"
	LabelOwner     = Domain + "/owner"

	// LabelDeletionPolicy with [DeletionPolicyOrphan] marks objects that are orphaned
	// when they are no longer rendered. The controller sets it, because such an object
	// has no owner reference and would look like one whose owner was removed.
	LabelDeletionPolicy  = Domain + "/deletion-policy"
	DeletionPolicyOrphan = "orphan"

	// LabelAggregate, with value "true" on a ClusterRole, adds its rules to the
	// controller's.
	LabelAggregate = Domain + "/aggregate-to-controller"

	// LabelDiscoverUntil marks the Configurations of kubectl akri discover. It holds the time,
	// in seconds since 1970, after which the controller deletes one whose command was killed.
	LabelDiscoverUntil = Domain + "/discover-until"

	// nodeLabelPrefix is the prefix of the label by which an agent selects the
	// Instances of its node.
	nodeLabelPrefix = "node." + Domain + "/"
)

// Annotations.
const (
	// AnnotationDeviceID holds the device ID of an Instance, as reported by the
	// discovery handler. The agent sets it, because two IDs can have the same hash.
	AnnotationDeviceID = Domain + "/device-id"

	// AnnotationServiceAccount holds the ServiceAccount that deletes the objects of an
	// Instance that garbage collection cannot delete. The controller sets it together
	// with [FinalizerCleanup], because the Configuration may be deleted first.
	AnnotationServiceAccount = Domain + "/service-account"

	// AnnotationFormerDevicePaths holds the time when [PropertyDevicePaths] last changed, and
	// its value until then. The agent sets it.
	AnnotationFormerDevicePaths = Domain + "/former-device-paths"
)

// PropertyDevicePaths has the device files of a local device, sorted. The agent adds it.
const PropertyDevicePaths = "AKRI_DEVICE_PATHS"

// PropertyDisplayName is what a discovery handler calls a device. Handlers may set it.
const PropertyDisplayName = "AKRI_DISPLAY_NAME"

// MaxDisplayNameLength bounds status.displayName, and what is shown in its place, in bytes.
const MaxDisplayNameLength = 128

// DisplayName returns what people call the device of an Instance, or "" if nobody says it.
func DisplayName(instance *Instance) string {
	return cmp.Or(instance.Status.DisplayName, instance.Spec.BrokerProperties[PropertyDisplayName])
}

// FinalizerCleanup is set on a Configuration or an Instance while it has objects in
// another namespace or cluster-scoped objects. The controller adds it before it creates
// the first and removes it after it has deleted the last.
const FinalizerCleanup = Domain + "/cleanup"

// Field managers. They must never change, because server-side apply tracks ownership by
// them.
const (
	// FieldManagerController applies broker resources and the controller's part of the
	// status of Configurations and Instances.
	FieldManagerController = "akri-controller"

	// FieldManagerAgent is the field manager of Instances, the same for all agents.
	// Agents create and patch Instances, they never apply them: a manager of its own
	// for each node would add 500 bytes and more per node to a shared Instance.
	FieldManagerAgent = "akri-agent"
)

// FieldManagerOfNode returns the field manager with which a node's agent applies its
// entries of a Configuration's status.discoveryFailures. The API server limits its
// length.
func FieldManagerOfNode(node string) string {
	const maxLength = 128
	if manager := FieldManagerAgent + "." + node; len(manager) <= maxLength {
		return manager
	}
	return FieldManagerAgent + "." + NodeLabel(node) // contains a digest
}

// digestBytes is the length of the digest of a node's name.
const digestBytes = 16

// NodeLabel returns the key of the label that an agent sets, with value "", on each
// Instance that its node sees or has a slot of, so that it can watch only those. A node
// name that does not fit into a label key (63 bytes) is replaced by its digest.
func NodeLabel(node string) string {
	const maxName = 63
	if len(node) > maxName {
		sum := sha256.Sum256([]byte(node))
		node = hex.EncodeToString(sum[:digestBytes])
	}
	return nodeLabelPrefix + node
}

// IsNodeLabel reports whether agents set a label to select the Instances of their node.
func IsNodeLabel(label string) bool { return strings.HasPrefix(label, nodeLabelPrefix) }

// NodeOfLabel returns the node whose agent sets a label; false if none does, or if the
// label has the digest of a name.
func NodeOfLabel(label string) (node string, ok bool) {
	node, found := strings.CutPrefix(label, nodeLabelPrefix)
	_, err := hex.DecodeString(node)
	if digest := err == nil && len(node) == 2*digestBytes; !found || node == "" || digest {
		return "", false
	}
	return node, true
}
