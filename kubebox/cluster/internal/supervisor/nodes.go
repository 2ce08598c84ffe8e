package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"akri.sh/akri/kubebox/cluster/internal/node"
	"akri.sh/akri/kubebox/cluster/internal/process"
	"akri.sh/akri/kubebox/cluster/internal/sandbox"
)

// machine is a node as its supervisor sees it: a component whose start also
// plugs in the network cable and hands over the configuration.
type machine struct {
	*process.Component
	config  node.Config
	cable   string
	address string // without prefix length
	died    func(process.Status)
	files   []*os.File // for the next start: the Config to read, the reports to write
}

// unplugLimit is how long the kernel may take to clear away a node's network,
// and its processes.
const unplugLimit = 5 * time.Second

func (s *Supervisor) newMachine(i int) *machine {
	name := NodeName(i)
	dir := NodeDir(s.config.Dir, name)
	m := &machine{
		cable:   fmt.Sprintf("veth%d", i+1),
		address: NodeAddress(i),
		died:    s.died,
		config: node.Config{
			Name:           name,
			Address:        NodeAddress(i) + "/24",
			Gateway:        bridgeAddress,
			PodCIDR:        podRange(i),
			Server:         insideServer,
			Dir:            dir,
			Bin:            s.config.Bin,
			PKI:            PKIDir(s.config.Dir),
			Cgroup:         s.config.Name + "/" + name,
			Images:         s.config.Images,
			Flags:          s.config.Flags,
			Env:            s.env,
			MayRaiseLimits: sandbox.MayRaiseLimits(),
		},
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

// Do is the node's power button: start boots, stop shuts down, kill pulls the
// plug. What is on the node's disk stays.
func (m *machine) Do(action string) error {
	switch action {
	case "start":
		return m.boot()
	case "stop", "kill":
		return m.Component.Do(action)
	case "restart":
		return errors.Join(m.Do("stop"), m.boot())
	}
	return fmt.Errorf("a node can be started, stopped, restarted and killed, but there is no %q", action)
}

// boot starts the node's first process, which waits for its configuration until
// the cable is plugged in.
func (m *machine) boot() error {
	if err := os.MkdirAll(node.LogDir(m.config.Dir), 0o755); err != nil {
		return err
	}
	if err := sandbox.Unplug(m.cable, unplugLimit); err != nil {
		return err // of a node that ended by itself
	}
	// Those of the pods that ran when the power failed: a kubelet looks at each
	// for seconds.
	if err := sandbox.RemoveCgroup(m.config.Cgroup, unplugLimit); err != nil {
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
	if err := sandbox.Cable(m.cable, m.Status().Pid, m.config.PodCIDR, m.address); err != nil {
		return err
	}
	return json.NewEncoder(configWrite).Encode(m.config)
}

// relayReports passes on what the node says of its components, until it ends.
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
