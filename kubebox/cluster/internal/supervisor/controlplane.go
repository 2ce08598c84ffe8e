package supervisor

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"akri.sh/akri/kubebox/cluster/internal/process"
	"akri.sh/akri/kubebox/cluster/internal/sandbox"
)

// The programs of the control plane, which are also the names of their components.
const (
	etcd              = "etcd"
	apiserver         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
)

// controlPlane returns the four components. etcd keeps its data in memory, if the
// kernel allows the mount, and never waits for a disk: these clusters hold nothing
// worth recovering.
func (s *Supervisor) controlPlane() ([]*process.Component, error) {
	data := filepath.Join(s.config.Dir, etcdDir)
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, err
	}
	client, peer, port := "127.0.0.1:2379", "127.0.0.1:2380", "443"
	if s.config.Isolated {
		if err := sandbox.Tmpfs(data, 0o700); err != nil {
			return nil, err
		}
	} else {
		free, err := freeAddresses(2)
		if err != nil {
			return nil, err
		}
		client, peer = free[0], free[1]
		_, port, err = net.SplitHostPort(s.config.HostAddress)
		if err != nil {
			return nil, err
		}
	}
	return []*process.Component{
		s.component(etcd, s.config.etcdFlags(data, client, peer)),
		s.component(apiserver, s.config.apiserverFlags(client, port)),
		s.component(controllerManager, s.config.controllerManagerFlags()),
		s.component(scheduler, s.config.schedulerFlags()),
	}, nil
}

// etcdFlags returns etcd's flags for its directory and addresses.
func (c Config) etcdFlags(data, client, peer string) []string {
	return []string{
		"--name=" + c.Name,
		"--data-dir=" + data,
		"--listen-client-urls=http://" + client,
		"--advertise-client-urls=http://" + client,
		"--listen-peer-urls=http://" + peer,
		"--initial-advertise-peer-urls=http://" + peer,
		"--initial-cluster=" + c.Name + "=http://" + peer,
		"--unsafe-no-fsync",
		"--log-level=warn",
	}
}

// apiserverFlags returns kube-apiserver's flags.
func (c Config) apiserverFlags(etcd, port string) []string {
	flags := []string{
		"--etcd-servers=http://" + etcd,
		"--secure-port=" + port,
		"--service-cluster-ip-range=" + serviceRange,
		"--tls-cert-file=" + c.pki("apiserver.crt"),
		"--tls-private-key-file=" + c.pki("apiserver.key"),
		"--client-ca-file=" + c.pki("ca.crt"),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + c.pki("sa.pub"),
		"--service-account-signing-key-file=" + c.pki("sa.key"),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--kubelet-client-certificate=" + c.pki("apiserver-kubelet-client.crt"),
		"--kubelet-client-key=" + c.pki("apiserver-kubelet-client.key"),
		"--kubelet-certificate-authority=" + c.pki("ca.crt"),
		"--kubelet-preferred-address-types=InternalIP",
		"--enable-aggregator-routing=true", // reach Services through their endpoints: only nodes have a kube-proxy
		// See apiserverEndpoint. An API server that manages its endpoint removes it when it
		// stops, and Pods reach it only after kube-proxy has noticed its return.
		"--endpoint-reconciler-type=none",
	}
	if c.Isolated {
		flags = append(flags, "--bind-address=0.0.0.0", "--advertise-address="+bridgeAddress)
	} else {
		flags = append(flags, "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1")
	}
	if c.AuditLog != "" {
		flags = append(flags,
			"--audit-log-path="+c.AuditLog,
			"--audit-policy-file="+c.auditPolicyFile(),
			"--audit-log-maxsize=4096", // MB; no rotation, so that a test reads one file
		)
	}
	return flags
}

// controllerManagerFlags returns kube-controller-manager's flags.
func (c Config) controllerManagerFlags() []string {
	kubeconfig := c.pki("controller-manager.kubeconfig")
	flags := []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--service-account-private-key-file=" + c.pki("sa.key"),
		"--root-ca-file=" + c.pki("ca.crt"),
		"--cluster-signing-cert-file=" + c.pki("ca.crt"),
		"--cluster-signing-key-file=" + c.pki("ca.key"),
		"--use-service-account-credentials=true",
		"--leader-elect=false",
		"--controllers=" + strings.Join(c.Controllers, ","),
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
		"--node-monitor-period=2s",
		"--node-monitor-grace-period=20s", // detects a lost node in half the default time
	}
	return append(flags, c.serving()...)
}

// schedulerFlags returns kube-scheduler's flags.
func (c Config) schedulerFlags() []string {
	kubeconfig := c.pki("scheduler.kubeconfig")
	flags := []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--leader-elect=false",
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	}
	return append(flags, c.serving()...)
}

// serving returns the flags for a component's own endpoints: on loopback in the
// cluster's network, or disabled where the port could be in use.
func (c Config) serving() []string {
	if c.Isolated {
		return []string{"--bind-address=127.0.0.1"}
	}
	return []string{"--secure-port=0"}
}

// auditPolicy logs each request once, when it has finished.
const auditPolicy = `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy",
 "omitStages": ["RequestReceived"], "rules": [{"level": "Metadata"}]}
`

func (c Config) auditPolicyFile() string { return filepath.Join(c.Dir, "audit-policy.yaml") }

// component returns a component of the control plane.
func (s *Supervisor) component(name string, flags []string) *process.Component {
	flags = slices.Concat(flags, s.config.Flags[name])
	return &process.Component{
		Name:  name,
		Log:   filepath.Join(LogDir(s.config.Dir), name+".log"),
		Table: s.table,
		Spec:  func() process.Spec { return process.Spec{Path: s.config.bin(name), Args: flags, Env: s.env} },
		Died:  s.died,
	}
}

// freeAddresses returns loopback addresses that are not in use. If another process
// takes one before the component does, the component fails with an error.
func freeAddresses(n int) ([]string, error) {
	var all []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("finding a free port: %w", err)
		}
		defer l.Close() // not before the end, so that the ports differ
		all = append(all, l.Addr().String())
	}
	return all, nil
}
