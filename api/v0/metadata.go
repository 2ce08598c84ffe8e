package v0

import (
	"crypto/sha256"
	"encoding/hex"
)

// Labels. Keys below [Domain] belong to Akri; templates may not set them.
const (
	// Domain is the API group and the prefix of labels, annotations and
	// resource names.
	Domain = "akri.sh"

	// LabelConfiguration names the Configuration. The controller puts it on
	// every broker resource and on the pods of the workload kinds built into
	// Kubernetes; agents put it on Instances.
	LabelConfiguration = Domain + "/configuration"

	// LabelInstance names the Instance. The controller puts it beside
	// LabelConfiguration on everything rendered at instance level.
	LabelInstance = Domain + "/instance"

	// LabelManagedBy with [ManagedBy] marks the objects that the controller
	// applies itself (and not the pods that a Deployment among them makes). The
	// controller watches nothing else.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// ManagedBy is the value of LabelManagedBy.
	ManagedBy = "akri"

	// LabelNamespace and LabelOwner are on objects that garbage collection cannot
	// remove with their Configuration or Instance, since they are in another
	// namespace or in none: its namespace and its UID. The controller puts them
	// there and finds them again by them.
	LabelNamespace = Domain + "/namespace"
	LabelOwner     = Domain + "/owner"

	// LabelDeletionPolicy with [DeletionPolicyOrphan] is on objects that stay when
	// they are no longer wanted. The controller puts it there, since such an object
	// looks like one whose owner somebody took off.
	LabelDeletionPolicy  = Domain + "/deletion-policy"
	DeletionPolicyOrphan = "orphan"

	// nodeLabelPrefix precedes the node's name in the label by which an agent
	// finds its own Instances.
	nodeLabelPrefix = "node." + Domain + "/"
)

// LabelAggregate on a ClusterRole, with the value "true", adds its rules to the
// controller's.
const LabelAggregate = Domain + "/aggregate-to-controller"

// Annotations.
const (
	// AnnotationDeviceID on an Instance is the id that the discovery handler
	// gave the device; the agent writes it. Two ids can share a short hash, so
	// the id itself is kept.
	AnnotationDeviceID = Domain + "/device-id"
)

// FinalizerElsewhere is on a Configuration or an Instance while it has objects in
// another namespace or in none. The controller puts it on before it makes the
// first and takes it off after it has removed the last.
const FinalizerElsewhere = Domain + "/objects-elsewhere"

// Field managers. Each is one writer's name for ever: server-side apply keeps
// ownership by it.
const (
	// FieldManagerController owns broker resources and what the controller
	// says in the status of Configurations and Instances.
	FieldManagerController = "akri-controller"

	// FieldManagerAgentPrefix precedes the node's name in the name under which
	// an agent publishes Instances.
	FieldManagerAgentPrefix = "akri-agent."
)

// NodeLabel is the key of the label that an agent puts, with value "", on each
// Instance its node sees, so that it can watch its own Instances and not those
// of the whole cluster. A node name that does not fit into a label key (63
// bytes) is replaced by its digest.
func NodeLabel(node string) string {
	const longestName = 63
	if len(node) > longestName {
		sum := sha256.Sum256([]byte(node))
		node = hex.EncodeToString(sum[:16])
	}
	return nodeLabelPrefix + node
}
