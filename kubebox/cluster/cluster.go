package cluster

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"

	"akri.sh/akri/kubebox/cluster/internal/readiness"
	"akri.sh/akri/kubebox/cluster/internal/supervisor"
)

// Cluster is a running cluster. Its methods may be used side by side.
type Cluster struct {
	dir      string
	state    state
	lifeline *os.File // nil if the cluster does not depend on this process
}

// Open finds the cluster that runs in dir. The error is a *NoClusterError if
// there is none.
func Open(dir string) (*Cluster, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	s, err := readState(dir)
	if err != nil {
		return nil, err
	}
	if !s.alive() {
		return nil, fmt.Errorf("the cluster in %s has died; its log:\n%s", dir, tailOfSupervisor(dir))
	}
	return &Cluster{dir: dir, state: s}, nil
}

// Name is the cluster's, and that of its control group.
func (c *Cluster) Name() string { return c.state.Name }

// Dir is the run directory.
func (c *Cluster) Dir() string { return c.dir }

// Nodes are the names of the nodes.
func (c *Cluster) Nodes() []string { return slices.Clone(c.state.Nodes) }

// Server is the API server's URL as reached from this machine.
func (c *Cluster) Server() string { return c.state.Server }

// Kubeconfig is the administrator's kubeconfig for use on this machine.
func (c *Cluster) Kubeconfig() string { return supervisor.HostKubeconfig(c.dir) }

// InsideKubeconfig is the same for commands run by Exec. There, $KUBECONFIG
// names it already.
func (c *Cluster) InsideKubeconfig() string { return supervisor.InsideKubeconfig(c.dir) }

// KubeletDir shows, on this machine, a node's /var/lib/kubelet.
func (c *Cluster) KubeletDir(node string) string { return filepath.Join(c.dir, node, "kubelet") }

// AkriDir shows, on this machine, a node's /var/lib/akri.
func (c *Cluster) AkriDir(node string) string { return filepath.Join(c.dir, node, "akri") }

// LogFiles lists the output of all programs of the cluster.
func (c *Cluster) LogFiles() []string {
	files, _ := filepath.Glob(filepath.Join(supervisor.LogDir(c.dir), "*.log"))
	for _, n := range c.state.Nodes {
		more, _ := filepath.Glob(filepath.Join(c.dir, n, "log", "*.log"))
		files = append(files, more...)
	}
	return files
}

// Kubectl runs kubectl on this machine as the administrator and returns what it
// prints. The error carries what it complains about.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) ([]byte, error) {
	return c.KubectlInput(ctx, nil, args...)
}

// KubectlInput is Kubectl with a standard input, such as a manifest.
func (c *Cluster) KubectlInput(ctx context.Context, input []byte, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(c.state.Bin, "kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig())
	cmd.Stdin = bytes.NewReader(input)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("kubectl %q: %w: %s", args, err, bytes.TrimSpace(complaint.Bytes()))
	}
	return out, nil
}

// BecomeKubectl replaces this process by kubectl. It returns only if it fails.
func (c *Cluster) BecomeKubectl(args ...string) error {
	path := filepath.Join(c.state.Bin, "kubectl")
	return syscall.Exec(path, append([]string{path}, args...), append(os.Environ(), "KUBECONFIG="+c.Kubeconfig()))
}

// WaitReady waits until the API server answers and every node's kubelet works
// and is Ready, such as after they were started again.
func (c *Cluster) WaitReady(ctx context.Context) error {
	pki := func(name string) string { return filepath.Join(supervisor.PKIDir(c.dir), name) }
	client, err := readiness.NewClient(c.state.Server, pki("ca.crt"), pki("admin.crt"), pki("admin.key"))
	if err != nil {
		return err
	}
	if err := client.APIServer(ctx); err != nil {
		return err
	}
	for _, n := range c.state.Nodes {
		// The API server believes in a kubelet for a while after its end.
		dial := func(ctx context.Context, network, address string) (net.Conn, error) {
			return c.Dial(ctx, n, network, address)
		}
		if err := readiness.Kubelet(ctx, n, dial); err != nil {
			return err
		}
		if err := client.Node(ctx, n); err != nil {
			return err
		}
	}
	return nil
}
