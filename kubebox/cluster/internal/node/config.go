package node

import "path/filepath"

// Config is all that a node is told.
type Config struct {
	Name    string
	Address string // in the cluster's network, with prefix length
	Gateway string // the bridge
	PodCIDR string
	Server  string // URL of the API server as seen from the node

	Dir    string   // of the node, see below
	Bin    string   // where the executables are
	PKI    string   // where the certificates are
	Cgroup string   // control group of its pods, without leading slash
	Images []string // archives to import before the kubelet starts
	Flags  map[string][]string
	Env    []string // of components and commands

	MayRaiseLimits bool // CAP_SYS_RESOURCE
}

// The folders of a node's directory, and the socket by which it is controlled.
const (
	kubeletDir    = "kubelet"    // /var/lib/kubelet inside
	akriDir       = "akri"       // /var/lib/akri inside
	containerdDir = "containerd" // /var/lib/containerd inside
	podLogDir     = "pods"       // /var/log/pods inside
	logDir        = "log"        // output of the components
	scratchDir    = "scratch"    // changes to /var and /etc, in memory
	controlSocket = "control.sock"
)

// SandboxImage is the image of the process that holds a pod's namespaces.
const SandboxImage = "akri.local/pause:1"

// ControlSocket is where the node at dir is controlled.
func ControlSocket(dir string) string { return filepath.Join(dir, controlSocket) }

// LogDir is where the node at dir keeps the output of its components.
func LogDir(dir string) string { return filepath.Join(dir, logDir) }

func (c Config) dir(name string) string { return filepath.Join(c.Dir, name) }
func (c Config) pki(name string) string { return filepath.Join(c.PKI, name) }
func (c Config) bin(name string) string { return filepath.Join(c.Bin, name) }
