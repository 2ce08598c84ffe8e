package supervisor

import (
	"crypto/rand"
	"fmt"
	"os"
	"syscall"

	"akri.sh/akri/kubebox/cluster/internal/node"
	"akri.sh/akri/kubebox/cluster/internal/sandbox"
)

// An executable that starts clusters is also their supervisor and the first
// process of their nodes; this variable says when it is which.
const roleVariable = "AKRI_CLUSTER_ROLE"

const (
	supervisorRole = "supervisor"
	nodeRole       = "node"
	probeRole      = "probe"
)

// Environment makes a copy of the executable become the supervisor.
func Environment() []string {
	return append(os.Environ(), roleVariable+"="+supervisorRole)
}

// ProbeEnvironment makes a copy of the executable, in new namespaces, find out
// whether they can be furnished.
func ProbeEnvironment() []string { return []string{roleVariable + "=" + probeRole} }

// Become plays the part that the environment asks for, if any, and then ends
// the process.
func Become() {
	role, asked := os.LookupEnv(roleVariable)
	if !asked {
		return
	}
	os.Unsetenv(roleVariable)
	if err := play(role); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", role, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func play(role string) error {
	file := func(fd int) *os.File {
		syscall.CloseOnExec(fd) // it is not for the children
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
	return fmt.Errorf("%s=%s is unknown", roleVariable, role)
}

// probe tries what a node needs of the kernel.
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
	defer sandbox.RemoveCgroup(group, 0)
	return sandbox.MakeCgroup(group)
}
