package node

import "path/filepath"

// Config is the configuration of a node.
type Config struct {
	Name    string
	Address string // in the cluster's network, with prefix length
	Gateway string // address of the bridge
	PodCIDR string
	Server  string // URL of the API server as seen from the node

	PodRanges      string // contains the PodCIDRs of all nodes
	RoutesServices bool   // run kube-proxy
	ClusterDomain  string
	DNS            string // address of the cluster's DNS server

	Dir    string              // the node's directory; see below
	Bin    string              // directory of the executables
	PKI    string              // directory of the certificates
	Cgroup string              // parent cgroup of its Pods, without leading slash
	Images []string            // archives to import before the kubelet starts
	Flags  map[string][]string // additional flags by program
	Env    []string            // of components and commands

	MayRaiseLimits bool // the machine grants CAP_SYS_RESOURCE
}

// The subdirectories of a node's directory, and its control socket.
const (
	kubeletDir    = "kubelet"    // /var/lib/kubelet inside
	akriDir       = "akri"       // /var/lib/akri inside
	containerdDir = "containerd" // /var/lib/containerd inside
	podLogDir     = "pods"       // /var/log/pods inside
	logDir        = "log"        // logs of the components
	scratchDir    = "scratch"    // changes to /var and /etc, in memory
	controlSocket = "control.sock"
)

// SandboxImage is the image of the process that holds a Pod's namespaces.
const SandboxImage = "akri.local/pause:1"

// ControlSocket returns the path of the control socket of the node at dir.
func ControlSocket(dir string) string { return filepath.Join(dir, controlSocket) }

// LogDir returns the path of the component logs of the node at dir.
func LogDir(dir string) string { return filepath.Join(dir, logDir) }

func (c Config) dir(name string) string { return filepath.Join(c.Dir, name) }
func (c Config) pki(name string) string { return filepath.Join(c.PKI, name) }
func (c Config) bin(name string) string { return filepath.Join(c.Bin, name) }
