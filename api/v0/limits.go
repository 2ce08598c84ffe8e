package v0

// Limits of the schema on what a device or a Configuration may contain. The schema
// counts characters. Code that counts bytes is stricter, and therefore safe.
//
// Together they keep an Instance below 100 KiB and a status below the 1.5 MiB that etcd
// accepts in the usual case, so that no author and no discovery handler can fill etcd or
// the caches of the agents with a few objects.
const (
	// MaxProperties is the number of properties of one device, and of brokerProperties
	// and sampleProperties of a Configuration. An Instance has those of the device and
	// of the Configuration: up to twice as many.
	MaxProperties = 500
	// MaxPropertyNameLength is the length of a property's name.
	MaxPropertyNameLength = 253
	// MaxPropertyLength is the length of a property's value.
	MaxPropertyLength = 8192
	// MaxPropertiesLength is the length of all properties of one device, or of one map
	// of a Configuration: names and values added up. In an Instance, it is twice that.
	MaxPropertiesLength = 16384

	// MaxDiscoveryProperties is the number of discoveryProperties: enough for a user
	// name and a password of each of 60 cameras, as Akri's ONVIF handler takes them.
	MaxDiscoveryProperties = 128
	// MaxDiscoveryPropertyLength is the length of a value of discoveryProperties in the
	// Configuration, and the number of bytes that one may have in a Secret or ConfigMap.
	MaxDiscoveryPropertyLength = 8192
	// MaxDiscoveryPropertiesLength is the number of bytes of all of these values: of those
	// in the Configuration, and of these and the ones from Secrets and ConfigMaps.
	MaxDiscoveryPropertiesLength = 65536

	// MaxConfigurations is the number of Configurations of one namespace that the webhook
	// admits, so that no tenant fills the memory of the controller and of the agents.
	MaxConfigurations = 100
	// MaxDevices is the number of devices of one Configuration that an agent publishes
	// on one node. It is also the number of objects that one for-each renders.
	MaxDevices = 1000
	// MaxNodes is the number of nodes of one Instance: the size of the largest cluster
	// that Kubernetes supports.
	MaxNodes = 5000
	// MaxSlots is the highest capacity, and the number of entries in deviceUsage.
	MaxSlots = 1000

	// MaxResources is the number of objects that a status lists: those of one Instance
	// or Configuration. The controller stays below it.
	MaxResources = 2000
	// MaxDiscoveryFailures is the number of entries in status.discoveryFailures, of all
	// nodes: each of them is read by every agent. An agent that finds the list full does
	// not add to it.
	MaxDiscoveryFailures = 50
	// MaxNodeFailures is the number of them that the policy for agents accepts from one
	// node, so that no node can use up the list.
	MaxNodeFailures = 10
	// MaxFailureMessageLength is the length of a message in discoveryFailures.
	MaxFailureMessageLength = 1024
	// MaxFailureHandlerLength is the length of a handler's name with its endpoint there.
	MaxFailureHandlerLength = 512

	// MaxLabels is the number of labels of a Configuration, and of an Instance without
	// those of nodes. The policy akri-metadata (config/policy/metadata.yaml) has this and
	// the following numbers.
	MaxLabels = 64
	// MaxOwnerReferences is the number of owners of a Configuration or an Instance.
	MaxOwnerReferences = 16
	// MaxOwnerReferenceLength is the length of each field of an owner reference.
	MaxOwnerReferenceLength = 253
	// MaxFinalizers is the number of finalizers of a Configuration or an Instance, without
	// those of agents of the original Akri, which have the names of nodes.
	MaxFinalizers = 32

	// MaxInstanceNameLength is what the kubelet accepts in a resource name after the
	// slash, and Kubernetes as the value of a label.
	MaxInstanceNameLength = 63
	// MaxConfigurationNameLength leaves room for a dash and six digits in an Instance's
	// name.
	MaxConfigurationNameLength = MaxInstanceNameLength - 1 - 2*shortDigest
)
