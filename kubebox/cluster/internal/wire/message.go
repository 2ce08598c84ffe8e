package wire

import "akri.sh/akri/kubebox/cluster/internal/process"

// Request asks a supervisor for one thing.
type Request struct {
	Op      string   `json:"op"`                // one of the operations below
	Name    string   `json:"name,omitempty"`    // of a component or node
	Action  string   `json:"action,omitempty"`  // for Control
	Args    []string `json:"args,omitempty"`    // for Exec: program and arguments
	Env     []string `json:"env,omitempty"`     // for Exec: added to the node's own
	Dir     string   `json:"dir,omitempty"`     // for Exec: working directory
	Network string   `json:"network,omitempty"` // for Dial and Listen
	Address string   `json:"address,omitempty"` // for Dial and Listen
}

// The operations.
const (
	Exec    = "exec"    // run Args with the three files that came along; answers when it ends
	Control = "control" // apply Action to the component Name
	Report  = "status"  // list components
	Dial    = "dial"    // answer with a socket connected to Address
	Listen  = "listen"  // answer with a listening socket
	End     = "end"     // end the whole cluster; answers when all is gone but the supervisor
)

// Response answers a Request. A request failed if Error is not empty; a command
// that ran and failed has an Exit other than 0 instead.
type Response struct {
	Error      string           `json:"error,omitempty"`
	Exit       int              `json:"exit,omitempty"`
	Components []process.Status `json:"components,omitempty"`
}
