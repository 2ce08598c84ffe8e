package node

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"akri.sh/akri/kubebox/cluster/internal/control"
	"akri.sh/akri/kubebox/cluster/internal/process"
	"akri.sh/akri/kubebox/cluster/internal/readiness"
	"akri.sh/akri/kubebox/cluster/internal/sandbox"
	"akri.sh/akri/kubebox/cluster/internal/wire"
)

// bootTimeout bounds the time until containerd responds and the images are imported.
const bootTimeout = time.Minute

// Init runs as the first process of a node. It reads its Config from input, which the
// supervisor writes once the node's network interface exists. It writes the status of
// components that exit by themselves to reports, as JSON lines. It returns on SIGTERM;
// all other processes of the node exit with it.
func Init(input, reports *os.File) error {
	var c Config
	if err := json.NewDecoder(input).Decode(&c); err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM)
	defer stop()
	if err := c.prepare(); err != nil {
		return err
	}
	report := json.NewEncoder(reports)
	table := process.NewTable()
	component := func(name string, flags ...string) *process.Component {
		return &process.Component{
			Name:  name,
			Log:   filepath.Join(LogDir(c.Dir), name+".log"),
			Table: table,
			Spec:  func() process.Spec { return process.Spec{Path: c.bin(name), Args: flags, Env: c.Env} },
			Died: func(s process.Status) {
				log.Printf("%s %s", s.Name, s.Cause)
				_ = report.Encode(s)
			},
		}
	}
	containerd := component("containerd", append([]string{"--config=" + containerdConfig}, c.Flags["containerd"]...)...)
	kubelet := component("kubelet", c.kubeletFlags()...)
	proxy := component(KubeProxy, append([]string{"--config=" + proxyConfig, "--v=2"}, c.Flags[KubeProxy]...)...)
	operator := &control.Operator{Table: table, Components: []control.Controlled{containerd, kubelet}, Env: c.Env}
	if c.RoutesServices {
		operator.Components = append(operator.Components, proxy)
	}
	if err := wire.Serve(ctx, ControlSocket(c.Dir), operator.Handle); err != nil {
		return err
	}

	if err := containerd.Start(); err != nil {
		return err
	}
	if err := c.importImages(ctx, table); err != nil {
		return err
	}
	client, err := readiness.NewClient(c.Server, c.pki("ca.crt"), c.pki(c.Name+".crt"), c.pki(c.Name+".key"))
	if err != nil {
		return err
	}
	// A kubelet that starts before the API server fails and backs off, and so does a
	// kube-proxy that starts before its Node exists.
	if err := client.APIServer(ctx); err != nil {
		return err
	}
	if err := kubelet.Start(); err != nil {
		return err
	}
	if c.RoutesServices {
		if err := client.NodeAddress(ctx, c.Name); err != nil {
			return err
		}
		if err := proxy.Start(); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}

// prepare sets up the new namespaces: mounts, network, cgroup, configuration files.
func (c Config) prepare() error {
	if err := sandbox.Detach(); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(c.Name)); err != nil {
		return fmt.Errorf("setting the host name: %w", err)
	}
	if err := sandbox.ConfigureVeth(c.Address, c.Gateway); err != nil {
		return err
	}
	if err := sandbox.MakeCgroup(c.Cgroup); err != nil {
		return err
	}
	if err := c.mount(); err != nil {
		return err
	}
	for path, content := range map[string][]byte{
		containerdConfig:                  c.containerd(),
		kubeletConfig:                     c.kubelet(),
		proxyConfig:                       c.proxy(),
		cniConfigDir + "/10-ptp.conflist": c.cni(),
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// mount replaces /var, /etc, /opt and /run, and mounts the node's directories.
func (c Config) mount() error {
	scratch := c.dir(scratchDir)
	if err := os.MkdirAll(scratch, 0o755); err != nil {
		return err
	}
	if err := sandbox.Tmpfs(scratch, 0o755); err != nil {
		return err
	}
	for _, dir := range []string{"/var", "/etc", "/opt"} {
		if _, err := os.Stat(dir); err != nil {
			continue // not every distribution has /opt
		}
		if err := sandbox.Overlay(dir, filepath.Join(scratch, dir)); err != nil {
			return err
		}
	}
	if err := sandbox.Tmpfs("/run", 0o755); err != nil {
		return err
	}
	for name, target := range map[string]string{
		kubeletDir:    "/var/lib/kubelet",
		akriDir:       "/var/lib/akri",
		containerdDir: "/var/lib/containerd",
		podLogDir:     "/var/log/pods",
	} {
		if err := c.bind(name, target); err != nil {
			return err
		}
	}
	return sandbox.FakeSettings("/run/kernel-settings", kernelSettings)
}

// bind mounts a subdirectory of the node's directory at target.
func (c Config) bind(name, target string) error {
	for _, d := range []string{c.dir(name), target} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	if name == containerdDir && sandbox.OnOverlay(c.Dir) {
		return sandbox.Tmpfs(target, 0o755)
	}
	return sandbox.Bind(c.dir(name), target)
}

// importImages imports the archives as soon as containerd responds.
func (c Config) importImages(ctx context.Context, table *process.Table) error {
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	for {
		conn, err := net.Dial("unix", containerdSocket)
		if err == nil {
			conn.Close()
			break
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("containerd does not respond: %w", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	for _, path := range c.Images {
		if err := c.importImage(table, path); err != nil {
			return fmt.Errorf("importing %s: %w", path, err)
		}
	}
	return nil
}

// importImage runs ctr on one archive.
func (c Config) importImage(table *process.Table, path string) error {
	archive, err := os.Open(path)
	if err != nil {
		return err
	}
	defer archive.Close()
	output := filepath.Join(LogDir(c.Dir), "import.log")
	logFile, err := os.OpenFile(output, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer logFile.Close()
	command := ImportCommand(c.Bin)
	p, err := table.Start(process.Spec{Path: command[0], Args: command[1:], Env: c.Env, Files: []*os.File{archive, logFile, logFile}})
	if err != nil {
		return err
	}
	if s := p.Status(); s.Signaled() || s.ExitStatus() != 0 {
		return fmt.Errorf("ctr failed: %s", process.Tail(output, 5))
	}
	return nil
}

// ImportCommand returns the command that imports an image archive from its standard
// input, inside a node.
func ImportCommand(bin string) []string {
	return []string{filepath.Join(bin, "ctr"), "--address=" + containerdSocket, "--namespace=k8s.io", "images", "import", "--local", "-"}
}
