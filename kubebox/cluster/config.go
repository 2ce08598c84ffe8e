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
	// Nodes is how many nodes there are: node1, node2 and so on.
	Nodes int
	// Dir is the run directory, made by Start and removed by Stop. Its path must
	// be short, as sockets lie below it, and not below /var, /etc or /run, which
	// nodes replace. Empty: a new directory in /tmp.
	Dir string
	// Bin is where package build put the executables. Empty: build.DefaultDir.
	Bin string
	// Images are image archives that every node gets, beside those that package
	// build made.
	Images []string
	// AuditLog is a file for the API server's audit log, one line for each
	// finished request at level Metadata. Empty: none. It outlives the cluster
	// if it lies outside Dir.
	AuditLog string
	// Controllers is the value of kube-controller-manager's flag of that name.
	// Nil: FastControllers, the ones that workloads need.
	Controllers []string
	// Flags are further command line flags by program: etcd, kube-apiserver,
	// kube-controller-manager, kube-scheduler, kubelet or containerd.
	Flags map[string][]string
	// Detached lets the cluster outlive the program that starts it.
	Detached bool
	// Timeout bounds Start. 0: two minutes.
	Timeout time.Duration
	// Progress, if any, is told what has been reached.
	Progress func(string)
}

// FastControllers are those without which pods, and what makes pods, would not
// run. All controllers start one after the other, so that a cluster with all of
// them is ready twice as late.
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
	"node-lifecycle-controller",
	"taint-eviction-controller",
	"endpoints-controller",
	"endpointslice-controller",
	"pod-garbage-collector-controller",
	"resourceclaim-controller",
	"clusterrole-aggregation-controller",
}

// maxDir leaves room in the 107 bytes of a socket's path for what the kubelet
// and its plugins put below the run directory.
const maxDir = 48

// complete fills in what was left empty and refuses what cannot work.
func (c Config) complete() (Config, error) {
	if c.Nodes < 0 || c.Nodes > supervisor.MaxNodes {
		return c, fmt.Errorf("%d nodes: from 0 to %d are possible", c.Nodes, supervisor.MaxNodes)
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
	for what, path := range map[string]string{"run directory": c.Dir, "directory of executables": c.Bin} {
		if err := visibleInNodes(what, path); err != nil && c.Nodes > 0 {
			return c, err
		}
	}
	if len(c.Dir) > maxDir {
		return c, fmt.Errorf("the run directory %s has a path of %d bytes: sockets below it allow for %d", c.Dir, len(c.Dir), maxDir)
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

func visibleInNodes(what, path string) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	for _, hidden := range []string{"/var", "/etc", "/run", "/proc", "/sys", "/dev"} {
		if path == hidden || strings.HasPrefix(path, hidden+"/") {
			return fmt.Errorf("the %s %s lies below %s, of which nodes see one of their own: choose another place", what, path, hidden)
		}
	}
	return nil
}

var unfit = regexp.MustCompile(`[^a-z0-9-]+`)

// nameOf derives a cluster's name from its run directory: one directory, one
// name, so that clusters never share a control group.
func nameOf(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	base := strings.Trim(unfit.ReplaceAllString(strings.ToLower(filepath.Base(dir)), "-"), "-")
	if !strings.HasPrefix(base, "akri") {
		base = "akri-" + base
	}
	return base[:min(len(base), 40)] + "-" + hex.EncodeToString(sum[:3])
}
