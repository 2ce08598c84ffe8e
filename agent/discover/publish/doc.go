// Package publish makes the devices of this node visible as Instances.
//
// Pure functions decide what to do about a device or an Instance (awaited.go: the
// Instances that wait for their devices; counts.go: the devices that fit; intent.go: the
// Instance of a new device; decide.go: the action; patch.go: the request). The [Publisher]
// carries out the decisions. gate.go says whether an Instance may be written now.
//
// Several nodes see a shared device. The first of their agents creates the Instance;
// the others join it with their entry in nodes and their label. All write under one
// field manager, with JSON Patches, because an apply manager of each node would make the
// Instance too large. The first node in nodes is the Instance's author. The others keep
// its description of the device, and never correct it: the API server would refuse that
// (config/policy/agents.yaml). Two agents that see a device differently therefore never
// overwrite each other in turns. When the author leaves, the next node is the author.
//
// To leave the list of nodes, to lose the label and to be deleted are three things: a
// node keeps its label while its containers have slots (holders.go).
//
// Always: an Instance that matches the desired one is not written; a patch tests what
// it was decided on. Never: an Instance is deleted while another node is listed or has a
// slot, in whatever order requests arrive, unless its Configuration is gone; a device
// takes over another device's Instance.
package publish
