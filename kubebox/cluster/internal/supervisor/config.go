package supervisor

import (
	"fmt"
	"path/filepath"

	"akri.sh/akri/kubebox/cluster/internal/node"
)

// Config is the configuration that the starting program passes to the supervisor.
type Config struct {
	Name        string // of the cluster and its cgroup
	Dir         string // the run directory
	Bin         string // directory of the executables
	Nodes       int
	Images      []string            // archives for every node, inside Dir
	AuditLog    string              // file of the API server's audit log; none if empty
	Controllers []string            // of kube-controller-manager
	Flags       map[string][]string // additional flags by program
	Isolated    bool                // in namespaces of its own
	HostAddress string              // of the API server, on this machine
}

// The descriptors that the supervisor inherits in addition to the standard ones. It
// reads its Config from standard input.
const (
	LifelineFile = 3 // read; the cluster stops at end of file, unless Release came first
	ReportFile   = 4 // written; Reports until the cluster is ready or has failed
	ListenerFile = 5 // listens on HostAddress, if Isolated
)

// Release is written to the lifeline to let the cluster outlive its starter.
const Release = 'r'

// Report is a message from the supervisor to its starter, one JSON object per line.
type Report struct {
	Progress string `json:"progress,omitempty"`
	Ready    bool   `json:"ready,omitempty"`
	Error    string `json:"error,omitempty"`
	Logs     string `json:"logs,omitempty"` // if Error: the ends of all logs, which are removed with the run directory

	RoutesServices bool `json:"routesServices,omitempty"` // if Ready
}

// The network inside. All clusters use the same addresses, as none sees another.
const (
	bridgeAddress  = "10.99.0.1"
	bridgePrefix   = bridgeAddress + "/24"
	serviceRange   = "10.96.0.0/16"
	serviceAddress = "10.96.0.1" // of the Service kubernetes, which works even without kube-proxy
	podRanges      = "10.244.0.0/16"
	insideServer   = "https://" + bridgeAddress + ":443"
	firstNode      = 11 // 10.99.0.11 is node1
)

// MaxNodes is limited by the address ranges.
const MaxNodes = 100

// NodeName returns the name of the node with index i, starting at 0.
func NodeName(i int) string { return fmt.Sprintf("node%d", i+1) }

// NodeAddress returns the address of the node with index i.
func NodeAddress(i int) string { return fmt.Sprintf("10.99.0.%d", firstNode+i) }

func podRange(i int) string { return fmt.Sprintf("10.244.%d.0/24", i+1) }

// ControlSocket returns the path of the supervisor's control socket in a run directory.
func ControlSocket(dir string) string { return filepath.Join(dir, "control.sock") }

// LogDir returns the directory of the control plane's logs in a run directory.
func LogDir(dir string) string { return filepath.Join(dir, "log") }

// LogFiles returns the logs of all programs in a run directory.
func LogFiles(dir string) []string {
	files, _ := filepath.Glob(filepath.Join(LogDir(dir), "*.log"))
	ofNodes, _ := filepath.Glob(filepath.Join(node.LogDir(NodeDir(dir, "node*")), "*.log"))
	return append(files, ofNodes...)
}

// PKIDir returns the directory of the certificates in a run directory.
func PKIDir(dir string) string { return filepath.Join(dir, "pki") }

// NodeDir returns the directory of a node in a run directory.
func NodeDir(dir, name string) string { return filepath.Join(dir, name) }

// HostKubeconfig returns the path of the kubeconfig for use on the machine.
func HostKubeconfig(dir string) string { return filepath.Join(dir, "kubeconfig") }

// InsideKubeconfig returns the path of the kubeconfig for use inside the cluster.
func InsideKubeconfig(dir string) string { return filepath.Join(dir, "kubeconfig-inside") }

func (c Config) pki(name string) string { return filepath.Join(PKIDir(c.Dir), name) }
func (c Config) bin(name string) string { return filepath.Join(c.Bin, name) }

// server returns the API server's URL for the supervisor and its children.
func (c Config) server() string {
	if c.Isolated {
		return insideServer
	}
	return "https://" + c.HostAddress
}
