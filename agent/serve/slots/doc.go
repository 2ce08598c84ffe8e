// Package slots decides which slots of devices this node owns, and which slot a
// container gets.
//
// A [Machine] is one node's view of the field deviceUsage of its Instances. It receives
// Events (what this node observed) and returns Commands (what this node should do), and
// answers questions, such as which IDs the kubelet had better choose. Its caller carries
// them out and reports their results as further events, in any order or never. A slot is
// given through the resource of its Instance, or through that of the Configuration, whose
// virtual IDs the machine maps to slots of different Instances when they are allocated.
//
// Read events.go and commands.go, then slot.go (what is known), allocate.go (a call, from
// the request to the answer), mapping.go and groups.go (virtual IDs), prefer.go (what the
// kubelet had better choose), record.go (what the API server says), release.go (what the
// kubelet says), list.go (how IDs leave a list), retry.go (what could not be written), then
// testdata. model_test.go runs nodes, kubelets and an API server with random faults: 1000
// schedules in each check; in make full 100000, and 50000 with seeds that are new for each
// commit.
//
// Always: the invariants of invariants_test.go. A slot is given to a container only
// while the record in the API server names this node, or, for a device that no
// other node can reach, will name it; a slot is released only on evidence that is
// later than the last call naming it. A slot that this agent finds as its own after a
// start is released and claimed before it is given again, because the record may be old
// and an earlier agent's release may still arrive, until an observation has named the
// slot, even one from before the Instance was known. A virtual ID does not name it:
// observations must list the ID for five seconds, after which a record is no longer taken
// to be old. An event costs what it concerns: one Instance and, if its offer changes, its
// group. An observation concerns all.
//
// Never: a clock, a goroutine, a client, a lock. Time enters through [Ticked], as
// the time since the caller started. A Machine is not safe for concurrent use.
//
// Known limits. If an Instance is deleted, only the agents know its owners. When it has
// been created again, each writes its own at once, and a machine gives no slot that another
// node had for five seconds. If that node's agent is down or cut off for longer, its container
// and one of another node use the slot, which is reported as a conflict when the agent is
// back. The same is true if the other agent starts in between, or less than five seconds
// before, or if its node joins the Instance only then: it may not know that there was an owner.
//
// Only the record says which slot a virtual ID has. If a local device's slot was given
// while the API server was down, and the agent ends before the owner is written, that
// is forgotten: the ID is not given again while a container has it, but its slot may
// be. The same is true if the slot was given while a release without a response could
// still arrive, and it arrives while the agent is down, or if the device left while the
// container had it, so that its Instance is gone, too. A slot that is released and
// claimed after a start, as above, is free for some milliseconds. If the Pod of its
// container was deleted by force after the last observation, the container still has
// it, and another node may claim it. A call cannot wait for the next observation: the
// kubelet's list is complete only after the call, and a list that is read during the
// call can make the kubelet give the slot to a second container.
package slots
