package wire

import "akri.sh/akri/kubebox/cluster/internal/process"

// Request is a request to a supervisor or node.
type Request struct {
	Op      string   `json:"op"`                // one of the operations below
	Name    string   `json:"name,omitempty"`    // of a component or node; for Forward: NAMESPACE/SERVICE:PORT
	Action  string   `json:"action,omitempty"`  // for Control
	Args    []string `json:"args,omitempty"`    // for Exec: program and arguments
	Env     []string `json:"env,omitempty"`     // for Exec: in addition to the node's own
	Dir     string   `json:"dir,omitempty"`     // for Exec: working directory
	Network string   `json:"network,omitempty"` // for Dial and Listen
	Address string   `json:"address,omitempty"` // for Dial and Listen
}

// The operations.
const (
	Exec    = "exec"    // run Args with the three passed files; responds when it exits
	Control = "control" // perform Action on the component Name
	Report  = "status"  // return the status of all components
	Dial    = "dial"    // return a socket connected to Address
	Listen  = "listen"  // return a listening socket
	Forward = "forward" // relay connections from the passed listener to a Service
	End     = "end"     // stop the whole cluster; the connection ends with the supervisor
)

// Response is the response to a Request. The request failed if Error is not empty; a
// command that ran and failed has a non-zero Exit instead.
type Response struct {
	Error      string           `json:"error,omitempty"`
	Exit       int              `json:"exit,omitempty"`
	Components []process.Status `json:"components,omitempty"`
	Address    string           `json:"address,omitempty"` // for Forward: of the listener in use
}
