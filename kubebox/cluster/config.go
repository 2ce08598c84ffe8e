package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"akri.sh/akri/kubebox/build"
	"akri.sh/akri/kubebox/cluster/internal/supervisor"
)

// Config describes a cluster. Its zero value is a control plane without nodes.
type Config struct {
	// Nodes is the number of nodes: node1, node2 and so on.
	Nodes int
	// Dir is the run directory, created by Start and removed by Stop. Its path must
	// be short, because it contains sockets, and not below /var, /etc, /opt or /run, which
	// nodes replace. Empty: a new directory in /tmp.
	Dir string
	// Bin is the directory with the results of package build. Empty: build.DefaultDir.
	Bin string
	// Images are image archives to load into every node, in addition to those of
	// package build.
	Images []string
	// AuditLog is a file for the API server's audit log: one line per finished
	// request, at level Metadata. Empty: none. Outside Dir, it outlives the cluster.
	AuditLog string
	// Controllers is the value of kube-controller-manager's flag --controllers.
	// Nil: FastControllers, those that workloads need.
	Controllers []string
	// Flags are additional command line flags by program: etcd, kube-apiserver,
	// kube-controller-manager, kube-scheduler, coredns, kubelet, kube-proxy or containerd.
	Flags map[string][]string
	// Purpose is what the cluster is for, such as "demo". [Cluster.Purpose] returns it to programs that open the
	// cluster, which may stop only their own.
	Purpose string
	// Detached lets the cluster outlive the program that started it.
	Detached bool
	// Timeout bounds Start. 0: two minutes.
	Timeout time.Duration
	// Progress, if not nil, receives progress messages.
	Progress func(string)
}

// FastControllers are the controllers that Pods and the usual workloads need.
// Controllers start one after the other: with all of them, a cluster takes twice as
// long to become ready.
var FastControllers = []string{
	"serviceaccount-controller",
	"serviceaccount-token-controller",
	"root-ca-certificate-publisher-controller",
	"namespace-controller",
	"garbage-collector-controller",
	"deployment-controller",
	"replicaset-controller",
	"daemonset-controller",
	"statefulset-controller",
	"job-controller",
	"disruption-controller", // without it, no Pod with a PodDisruptionBudget can be evicted
	"node-lifecycle-controller",
	"taint-eviction-controller",
	"endpoints-controller",
	"endpointslice-controller",
	"pod-garbage-collector-controller",
	"resourceclaim-controller",
	"clusterrole-aggregation-controller",
}

// complete fills in defaults and rejects invalid settings.
func (c Config) complete() (Config, error) {
	if c.Nodes < 0 || c.Nodes > supervisor.MaxNodes {
		return c, fmt.Errorf("%d nodes: must be from 0 to %d", c.Nodes, supervisor.MaxNodes)
	}
	if c.Bin == "" {
		dir, err := build.DefaultDir()
		if err != nil {
			return c, err
		}
		c.Bin = dir
	}
	for _, path := range []*string{&c.Bin, &c.Dir, &c.AuditLog} {
		if *path == "" {
			continue
		}
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return c, err
		}
		*path = absolute
	}
	if err := checkVisibleInNodes("directory of executables", c.Bin); err != nil && c.Nodes > 0 {
		return c, err
	}
	if err := checkPath(c.Dir, c.Nodes > 0); err != nil {
		return c, err
	}
	if err := build.Check(c.Bin, c.Nodes > 0); err != nil {
		return c, err
	}
	built, err := build.Images(c.Bin)
	if err != nil {
		return c, err
	}
	c.Images = append(built, c.Images...)
	if c.Controllers == nil {
		c.Controllers = FastControllers
	}
	if c.Timeout == 0 {
		c.Timeout = 2 * time.Minute
	}
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
	if c.Dir == "" {
		dir, err := os.MkdirTemp("/tmp", "akri-")
		if err != nil {
			return c, err
		}
		c.Dir = dir
	}
	return c, nil
}

// invalid matches the characters that a cluster's name cannot contain.
var invalid = regexp.MustCompile(`[^a-z0-9-]+`)

// nameOf derives a cluster's name from its run directory. Different directories have
// different names, so that clusters never share a cgroup.
func nameOf(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	base := strings.Trim(invalid.ReplaceAllString(strings.ToLower(filepath.Base(dir)), "-"), "-")
	if !strings.HasPrefix(base, "akri") {
		base = "akri-" + base
	}
	return base[:min(len(base), 40)] + "-" + hex.EncodeToString(sum[:3])
}
