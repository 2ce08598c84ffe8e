package supervisor

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"akri.sh/akri/kubebox/cluster/internal/node"
	"akri.sh/akri/kubebox/cluster/internal/process"
	"akri.sh/akri/kubebox/cluster/internal/sandbox"
)

// machine is a node as a component of the supervisor. Starting it also creates its
// network interface and passes its configuration.
type machine struct {
	*process.Component
	config  node.Config
	veth    string // name of the interface on the bridge
	address string // without prefix length
	died    func(process.Status)
	files   []*os.File // for the next start: the Config to read, the reports to write
}

// cleanupTimeout bounds how long the kernel may take to remove a node's network
// interface and processes.
const cleanupTimeout = 5 * time.Second

// newMachine returns the node with index i.
func (s *Supervisor) newMachine(i int) *machine {
	name := NodeName(i)
	dir := NodeDir(s.config.Dir, name)
	m := &machine{
		veth:    fmt.Sprintf("veth%d", i+1),
		address: NodeAddress(i),
		died:    s.died,
		config: node.Config{
			Name:           name,
			Address:        NodeAddress(i) + "/24",
			Gateway:        bridgeAddress,
			PodCIDR:        podRange(i),
			PodRanges:      podRanges,
			Server:         insideServer,
			Dir:            dir,
			Bin:            s.config.Bin,
			PKI:            PKIDir(s.config.Dir),
			Cgroup:         s.config.Name + "/" + name,
			Images:         s.config.Images,
			Flags:          s.config.Flags,
			Env:            s.env,
			ClusterDomain:  clusterDomain,
			DNS:            bridgeAddress,
			MayRaiseLimits: sandbox.MayRaiseLimits(),
		},
	}
	if s.routed {
		m.config.DNS, m.config.RoutesServices = dnsAddress, true
	}
	m.Component = &process.Component{
		Name:  name,
		Log:   filepath.Join(node.LogDir(dir), "init.log"),
		Table: s.table,
		Died:  s.died,
		Spec: func() process.Spec {
			return process.Spec{
				Path:  "/proc/self/exe",
				Env:   append([]string{roleVariable + "=" + nodeRole}, s.env...),
				Files: append(make([]*os.File, 3), m.files...),
				Flags: sandbox.Namespaces,
			}
		},
	}
	return m
}

// Do boots the node (start), shuts it down (stop), or cuts its power (kill). The
// node's disk is kept.
func (m *machine) Do(action string) error {
	switch action {
	case "start":
		return m.boot()
	case "stop", "kill":
		return m.Component.Do(action)
	case "restart":
		if err := m.Do("stop"); err != nil {
			return err
		}
		return m.boot()
	}
	return fmt.Errorf("unknown action %q for a node: use one of start, stop, restart, kill", action)
}

// boot starts the node's first process and creates its network interface. The process
// waits for its configuration, which is sent last.
func (m *machine) boot() error {
	if err := os.MkdirAll(node.LogDir(m.config.Dir), 0o755); err != nil {
		return err
	}
	if err := sandbox.AwaitVethRemoval(m.veth, cleanupTimeout); err != nil {
		return err // left over from a node that exited by itself
	}
	// Cgroups of Pods that ran during a power failure: a kubelet spends seconds on each.
	if err := sandbox.RemoveCgroup(m.config.Cgroup, cleanupTimeout); err != nil {
		return err
	}
	configRead, configWrite, err := os.Pipe()
	if err != nil {
		return err
	}
	defer configWrite.Close()
	reportRead, reportWrite, err := os.Pipe()
	if err != nil {
		configRead.Close()
		return err
	}
	m.files = []*os.File{configRead, reportWrite}
	err = m.Start()
	configRead.Close()
	reportWrite.Close()
	if err != nil {
		reportRead.Close()
		return err
	}
	go m.relayReports(reportRead)
	if err := sandbox.AddVeth(m.veth, m.Status().Pid, m.config.PodCIDR, m.address); err != nil {
		return err
	}
	return json.NewEncoder(configWrite).Encode(m.config)
}

// relayReports forwards the status of the node's components until the node exits.
func (m *machine) relayReports(from *os.File) {
	defer from.Close()
	for lines := json.NewDecoder(from); ; {
		var s process.Status
		if lines.Decode(&s) != nil {
			return
		}
		s.Name = m.Name + "/" + s.Name
		m.died(s)
	}
}
