package debug

import "time"

// Port is the default port of the endpoint, and Path its path.
const (
	Port = 8089
	Path = "/debug/state"
)

// maxSlots bounds the slots in a State. Free slots that nothing is wrong with are only
// counted.
const maxSlots = 2000

// maxInstances bounds the Instances in a State. Those with nothing to say are left out.
const maxInstances = 500

// State is what an agent knows, as served in JSON.
type State struct {
	// Node is the name of the node.
	Node string `json:"node"`
	// Version is the version of the agent.
	Version string `json:"version"`
	// Started is when the agent started, and Time when the state was collected.
	Started time.Time `json:"started"`
	Time    time.Time `json:"time"`
	// NotReady is the reason why the agent is not ready; empty if it is.
	NotReady   string     `json:"notReady,omitempty"`
	Kubernetes Kubernetes `json:"kubernetes"`
	// Handlers are the endpoints of discovery handlers that have registered.
	Handlers []Handler `json:"handlers,omitempty"`
	// Configurations are those whose handler is on the node.
	Configurations []Configuration `json:"configurations,omitempty"`
	Slots          Slots           `json:"slots"`
	// Errors are the latest warnings and errors in the agent's log, latest first.
	Errors []Record `json:"errors,omitempty"`
}

// Where an agent reads the Pods of its node.
const (
	PodsOfKubelet   = "pods-api"
	PodsOfAPIServer = "api-server"
)

// Kubernetes is what an agent has found out about the versions of the cluster.
type Kubernetes struct {
	// APIServer is the version of the API server; empty until it has answered.
	APIServer string `json:"apiServer,omitempty"`
	// Pods is PodsOfKubelet, or PodsOfAPIServer if the kubelet serves no Pods API;
	// empty if nothing is offered to the kubelet.
	Pods string `json:"pods,omitempty"`
	// Lacking is what Akri does without on this version, with the consequences.
	Lacking []string `json:"lacking,omitempty"`
}

// Handler is an endpoint of a discovery handler.
type Handler struct {
	Name string `json:"name"`
	// Endpoint is the path of a socket, or an address.
	Endpoint string `json:"endpoint"`
	// Shared reports whether other nodes see the same devices.
	Shared bool `json:"shared,omitempty"`
	// State is Waiting, Active or Offline.
	State string `json:"state"`
	// OfflineSince is set if State is Offline.
	OfflineSince *time.Time `json:"offlineSince,omitempty"`
	// Streams is the number of open Discover streams.
	Streams int `json:"streams"`
}

// Configuration is a Configuration that the node serves.
type Configuration struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Handler   string `json:"handler"`
	// Devices are those that the handlers report, and Online those whose handler
	// responds.
	Devices int `json:"devices"`
	Online  int `json:"online"`
	// Instances is the number of Instances with this node.
	Instances int `json:"instances"`
	// Failures are what the handlers' streams fail with.
	Failures []string `json:"failures,omitempty"`
}

// Slots are the slots of the node's devices. A slot's state is one of:
//
//	free          no node uses it
//	held          this node uses it
//	taken         another node uses it
//	conflicting   a container of this node uses it, but the Instance names another owner
//	unwritable    the agent cannot write its owner, so the slot is not given to a container
type Slots struct {
	// Unavailable is the reason why the slots are unknown; empty if they are known.
	Unavailable string `json:"unavailable,omitempty"`
	// Counts are the numbers of slots by state, of all slots.
	Counts map[string]int `json:"counts,omitempty"`
	// List are the slots that are not free, sorted. If there are more than fit,
	// Omitted is the number of the others.
	List    []Slot `json:"list,omitempty"`
	Omitted int    `json:"omitted,omitempty"`
	// Instances are those in an unusual state, sorted. If there are more than fit,
	// InstancesOmitted is the number of the others.
	Instances        []Instance `json:"instances,omitempty"`
	InstancesOmitted int        `json:"instancesOmitted,omitempty"`
	// Waiting is the number of the kubelet's Allocate calls that have not been answered.
	Waiting int `json:"waiting,omitempty"`
	// Resources are those of Configurations, through which a container gets any of the
	// devices.
	Resources []Resource `json:"resources,omitempty"`
	// Violations are invariants that do not hold, which is a bug in the agent.
	Violations []Violation `json:"violations,omitempty"`
}

// Instance is an Instance that the node does not simply offer. Its state has at least one of:
//
//	unpublished   the node does not see the device
//	offline       the device is missing, and kept for its grace period
//	unrecorded    the Instance has not been read from the API server
//	left          the Instance no longer has the node's label
//	suspended     claims cannot be written, so no container gets a slot
//	restoring     it was deleted, and other nodes may write their owners again
type Instance struct {
	Name  string   `json:"name"`
	State []string `json:"state"`
}

// AddInstance lists an Instance unless its state is empty.
func (s *Slots) AddInstance(instance Instance) {
	switch {
	case len(instance.State) == 0:
	case len(s.Instances) >= maxInstances:
		s.InstancesOmitted++
	default:
		s.Instances = append(s.Instances, instance)
	}
}

// Slot is one slot of a device.
type Slot struct {
	// Name is the slot's key in the deviceUsage of the Instance.
	Name string `json:"name"`
	// State is one of the states of [Slots].
	State string `json:"state"`
	// Owner is the owner, in the format of deviceUsage.
	Owner string `json:"owner,omitempty"`
	// InUse reports whether a container of this node has the slot or may have it.
	InUse bool `json:"inUse,omitempty"`
	// Healthy reports whether the kubelet may allocate the slot.
	Healthy bool `json:"healthy,omitempty"`
	// Pending is the write in flight: claiming or releasing.
	Pending string `json:"pending,omitempty"`
}

// Add counts a slot, and lists it unless it is free and nothing is pending.
func (s *Slots) Add(slot Slot) {
	if s.Counts == nil {
		s.Counts = map[string]int{}
	}
	s.Counts[slot.State]++
	switch {
	case slot.State == "free" && slot.Pending == "" && !slot.InUse:
	case len(s.List) >= maxSlots:
		s.Omitted++
	default:
		s.List = append(s.List, slot)
	}
}

// Resource is the resource of a Configuration.
type Resource struct {
	// Name is the name of the resource: akri.sh/CONFIGURATION.
	Name string `json:"name"`
	// Offered is the number of Instances with a slot for one more container.
	Offered int `json:"offered"`
	// IDs are the devices that the kubelet knows by this resource.
	IDs []ID `json:"ids,omitempty"`
}

// ID is a device of a Configuration's resource, in the kubelet's words.
type ID struct {
	ID string `json:"id"`
	// Slots are those that were allocated by this ID; none if it is not in use.
	Slots   []string `json:"slots,omitempty"`
	Healthy bool     `json:"healthy,omitempty"`
}

// Violation is an invariant that does not hold.
type Violation struct {
	// Invariant is its number, such as I2.
	Invariant string `json:"invariant"`
	// Where is a slot, or an ID of a Configuration's resource.
	Where string `json:"where"`
	What  string `json:"what"`
}

// Record is a warning or an error in the agent's log.
type Record struct {
	// Level is WARN or ERROR.
	Level   string `json:"level"`
	Message string `json:"message"`
	// Details are the attributes, as in the log's text format.
	Details string `json:"details,omitempty"`
	// First and Last are when it was logged, and Count is how often.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	Count int       `json:"count"`
}
