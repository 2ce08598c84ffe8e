package supervisor

import (
	"crypto/rand"
	"fmt"
	"os"
	"syscall"

	"akri.sh/akri/kubebox/cluster/internal/node"
	"akri.sh/akri/kubebox/cluster/internal/sandbox"
)

// An executable that starts clusters is also their supervisor and the first process of
// their nodes. This environment variable selects the role.
const roleVariable = "AKRI_CLUSTER_ROLE"

const (
	supervisorRole = "supervisor"
	nodeRole       = "node"
	probeRole      = "probe"
)

// Environment returns the environment that makes the executable a supervisor.
func Environment() []string {
	return append(os.Environ(), roleVariable+"="+supervisorRole)
}

// ProbeEnvironment returns the environment that makes the executable, in new
// namespaces, check whether they can be set up.
func ProbeEnvironment() []string { return []string{roleVariable + "=" + probeRole} }

// RunRole performs the role that the environment requests, if any, and exits.
func RunRole() {
	role, ok := os.LookupEnv(roleVariable)
	if !ok {
		return
	}
	os.Unsetenv(roleVariable)
	if err := runRole(role); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", role, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// runRole performs a role until its work is done.
func runRole(role string) error {
	file := func(fd int) *os.File {
		syscall.CloseOnExec(fd) // children must not inherit it
		return os.NewFile(uintptr(fd), "inherited")
	}
	switch role {
	case supervisorRole:
		return Run(os.Stdin, file(LifelineFile), file(ReportFile), file(ListenerFile))
	case nodeRole:
		return node.Init(file(3), file(4))
	case probeRole:
		return probe()
	}
	return fmt.Errorf("unknown role %s=%s", roleVariable, role)
}

// probe checks that the kernel grants everything a node needs.
func probe() error {
	if err := sandbox.Detach(); err != nil {
		return err
	}
	if err := sandbox.Bridge(bridgePrefix); err != nil {
		return err
	}
	if err := sandbox.Tmpfs("/run", 0o755); err != nil {
		return err
	}
	if err := sandbox.Overlay("/var", "/run/var"); err != nil {
		return err
	}
	group := "akri-probe-" + rand.Text()
	defer func() { _ = sandbox.RemoveCgroup(group, 0) }()
	return sandbox.MakeCgroup(group)
}
