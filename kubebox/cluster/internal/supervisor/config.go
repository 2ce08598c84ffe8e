package supervisor

import (
	"fmt"
	"path/filepath"
)

// Config is what the starting program hands to the supervisor.
type Config struct {
	Name        string // of the cluster; its control group has the same
	Dir         string // the run directory
	Bin         string // where the executables are
	Nodes       int
	Images      []string            // archives for every node, inside Dir
	AuditLog    string              // file of the API server's audit log; none if empty
	Controllers []string            // of kube-controller-manager
	Flags       map[string][]string // more flags by program
	Isolated    bool                // in namespaces of its own
	HostAddress string              // where the machine reaches the API server
}

// The descriptors that the supervisor inherits beside the standard ones. Its
// Config comes on standard input.
const (
	LifelineFile = 3 // reads Release, or ends: then the cluster ends
	ReportFile   = 4 // writes Reports until the cluster is up or has failed
	ListenerFile = 5 // listens on HostAddress, if Isolated
)

// Release is sent down the lifeline to let the cluster outlive its starter.
const Release = 'r'

// Report is one line of what the supervisor tells its starter.
type Report struct {
	Progress string `json:"progress,omitempty"`
	Ready    bool   `json:"ready,omitempty"`
	Error    string `json:"error,omitempty"`
}

// The network inside. It is the same in every cluster: none sees another.
const (
	bridgeAddress  = "10.99.0.1"
	bridgePrefix   = bridgeAddress + "/24"
	serviceRange   = "10.96.0.0/16"
	serviceAddress = "10.96.0.1" // of the Service kubernetes, served without kube-proxy
	insideServer   = "https://" + bridgeAddress + ":443"
	firstNode      = 11 // 10.99.0.11 is node1
)

// MaxNodes follows from the ranges of addresses.
const MaxNodes = 100

// NodeName is the name of the node with index i, from 0.
func NodeName(i int) string { return fmt.Sprintf("node%d", i+1) }

// NodeAddress is the address of the node with index i.
func NodeAddress(i int) string { return fmt.Sprintf("10.99.0.%d", firstNode+i) }

func podRange(i int) string { return fmt.Sprintf("10.244.%d.0/24", i+1) }

// Places in the run directory that the starting program knows too.
func ControlSocket(dir string) string    { return filepath.Join(dir, "control.sock") }
func LogDir(dir string) string           { return filepath.Join(dir, "log") }
func PKIDir(dir string) string           { return filepath.Join(dir, "pki") }
func NodeDir(dir, name string) string    { return filepath.Join(dir, name) }
func HostKubeconfig(dir string) string   { return filepath.Join(dir, "kubeconfig") }
func InsideKubeconfig(dir string) string { return filepath.Join(dir, "kubeconfig-inside") }

func (c Config) pki(name string) string { return filepath.Join(PKIDir(c.Dir), name) }
func (c Config) bin(name string) string { return filepath.Join(c.Bin, name) }

// server is the API server's URL as the supervisor and its children reach it.
func (c Config) server() string {
	if c.Isolated {
		return insideServer
	}
	return "https://" + c.HostAddress
}
