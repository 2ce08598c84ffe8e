package hollow

import (
	"fmt"
	"path/filepath"
	"strconv"
)

// Node is a node of a hollow agent.
type Node struct {
	// Dir is the directory of all nodes. Its path must be short, because it
	// contains sockets.
	Dir string
	// Number counts from 0.
	Number int
}

// UserAgentName is the user agent of a hollow agent up to the first slash, that of a
// real agent. The node's number follows.
const UserAgentName = "akri-agent"

// Name returns the node's name in the API server.
func (n Node) Name() string { return fmt.Sprintf("node-%04d", n.Number) }

// UserAgent returns the user agent of the node's agent.
func (n Node) UserAgent() string { return UserAgentName + "/" + n.version() }

func (n Node) version() string { return strconv.Itoa(n.Number) }

// HandlersDir returns the directory of the agent's registration socket.
func (n Node) HandlersDir() string { return filepath.Join(n.Dir, n.version(), "h") }

// KubeletDir returns the root directory of the node's kubelet.
func (n Node) KubeletDir() string { return filepath.Join(n.Dir, n.version(), "k") }

// ProbeAddress returns the address at which the agent answers probes. Each node has
// another one, all on the loopback interface.
func (n Node) ProbeAddress() string {
	const port = 8081
	return fmt.Sprintf("127.1.%d.%d:%d", n.Number/250, n.Number%250+1, port)
}
