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

// Cluster is a running cluster. Its methods are safe for concurrent use.
type Cluster struct {
	dir      string
	state    state
	lifeline *os.File // nil if the cluster does not depend on this process
}

// Open returns the cluster that runs in dir, or a *NoClusterError if there is none.
func Open(dir string) (*Cluster, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	s, err := readState(dir)
	if err != nil {
		return nil, err
	}
	switch alive := s.alive(); {
	case s.Starting && alive:
		return nil, s.startingError(dir)
	case s.Starting:
		return nil, fmt.Errorf("the start of the cluster in %s was interrupted", dir)
	case !alive:
		return nil, fmt.Errorf("the supervisor of the cluster in %s has exited; its log:\n%s", dir, tailOfSupervisor(dir))
	}
	return &Cluster{dir: dir, state: s}, nil
}

// Purpose returns what the cluster is for; see [Config].
func (c *Cluster) Purpose() string { return c.state.Purpose }

// Name returns the name of the cluster, which is also that of its cgroup.
func (c *Cluster) Name() string { return c.state.Name }

// Dir returns the run directory.
func (c *Cluster) Dir() string { return c.dir }

// Nodes returns the names of the nodes.
func (c *Cluster) Nodes() []string { return slices.Clone(c.state.Nodes) }

// RoutesServices reports whether nodes and Pods reach Services at their addresses. If it
// is false, the machine lacks nft, and a progress message of [Start] said so.
func (c *Cluster) RoutesServices() bool { return c.state.RoutesServices }

// Server returns the API server's URL for use on this machine.
func (c *Cluster) Server() string { return c.state.Server }

// Kubeconfig returns the path of the administrator's kubeconfig for use on this
// machine.
func (c *Cluster) Kubeconfig() string { return supervisor.HostKubeconfig(c.dir) }

// InsideKubeconfig returns the path of the administrator's kubeconfig for commands
// run by Exec, which sets $KUBECONFIG to it.
func (c *Cluster) InsideKubeconfig() string { return supervisor.InsideKubeconfig(c.dir) }

// KubeletDir returns the path of a node's /var/lib/kubelet on this machine.
func (c *Cluster) KubeletDir(node string) string { return filepath.Join(c.dir, node, "kubelet") }

// AkriDir returns the path of a node's /var/lib/akri on this machine.
func (c *Cluster) AkriDir(node string) string { return filepath.Join(c.dir, node, "akri") }

// LogFiles returns the log files of all programs of the cluster.
func (c *Cluster) LogFiles() []string { return supervisor.LogFiles(c.dir) }

// Kubectl runs kubectl on this machine as the administrator and returns its output.
// The error includes its standard error.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) ([]byte, error) {
	return c.KubectlInput(ctx, nil, args...)
}

// KubectlInput is like Kubectl, but passes input, such as a manifest, on standard input.
func (c *Cluster) KubectlInput(ctx context.Context, input []byte, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(c.state.Bin, "kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig())
	cmd.Stdin = bytes.NewReader(input)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("kubectl %q: %w: %s", args, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return out, nil
}

// BecomeKubectl replaces this process with kubectl. It returns only on failure.
func (c *Cluster) BecomeKubectl(args ...string) error {
	path := filepath.Join(c.state.Bin, "kubectl")
	return syscall.Exec(path, append([]string{path}, args...), append(os.Environ(), "KUBECONFIG="+c.Kubeconfig()))
}

// WaitReady waits until the API server is ready, every kubelet is healthy, and every node
// is Ready and routes Services, for example after components were restarted.
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
		// A node stays Ready for a while after its kubelet has exited.
		dial := func(ctx context.Context, network, address string) (net.Conn, error) {
			return c.Dial(ctx, n, network, address)
		}
		if err := readiness.HTTP(ctx, "the kubelet of "+n, "http://127.0.0.1:10248/healthz", dial); err != nil {
			return err
		}
		if c.state.RoutesServices {
			if err := readiness.Port(ctx, "kube-proxy of "+n, supervisor.DNSService, dial); err != nil {
				return err
			}
		}
		if err := client.Node(ctx, n); err != nil {
			return err
		}
	}
	return nil
}
