package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The bounds of a shape: nodes, and devices on each node. Products of the two do not
// overflow.
const (
	maxNodes   = 1000
	maxDevices = 1_000_000
)

// shape is a number of devices on a number of nodes.
type shape struct {
	Shared  bool
	Devices int // on each node
	Nodes   int
	// Others are further nodes of shared devices, which have no agent. They are there when
	// nodes join and leave.
	Others int
}

// parseShape parses local:DEVICESxNODES, shared:DEVICESxNODES or
// shared:DEVICESxNODES+OTHERS.
func parseShape(text string) (shape, error) {
	wanted := fmt.Errorf("shape %q: want local:DEVICESxNODES, shared:DEVICESxNODES or shared:DEVICESxNODES+OTHERS, "+
		"at most %d devices and %d nodes, such as shared:100x10", text, maxDevices, maxNodes)
	kind, size, _ := strings.Cut(text, ":")
	if kind != "local" && kind != "shared" {
		return shape{}, wanted
	}
	devices, nodes, _ := strings.Cut(size, "x")
	s := shape{Shared: kind == "shared"}
	var err error
	if first, others, found := strings.Cut(nodes, "+"); found {
		nodes = first
		if s.Others, err = strconv.Atoi(others); err != nil || s.Others < 1 || s.Others > maxNodes || !s.Shared {
			return shape{}, wanted
		}
	}
	if s.Devices, err = strconv.Atoi(devices); err != nil || s.Devices < 1 || s.Devices > maxDevices {
		return shape{}, wanted
	}
	if s.Nodes, err = strconv.Atoi(nodes); err != nil || s.Nodes < 1 || s.Nodes > maxNodes {
		return shape{}, wanted
	}
	return s, nil
}

// String returns a phrase such as "100 shared devices x 10 nodes".
func (s shape) String() string {
	kind := "local"
	if s.Shared {
		kind = "shared"
	}
	text := fmt.Sprintf("%d %s devices x %d nodes", s.Devices, kind, s.Nodes)
	if s.Others > 0 {
		text += fmt.Sprintf(" and %d without agents", s.Others)
	}
	return text
}

// instances returns the number of Instances when the shape has settled.
func (s shape) instances() int {
	if s.Shared {
		return s.Devices
	}
	return s.Devices * s.Nodes
}

// watchesPath has the number of inotify instances of a user.
const watchesPath = "/proc/sys/fs/inotify/max_user_instances"

// nodes returns the number of nodes with those that join shared devices.
func (s shape) nodes(joins int) int {
	if s.Shared {
		return s.Nodes + joins
	}
	return s.Nodes
}

// agentsPerProcess returns how many of the shape's agents and of those that join one
// process can run, or an error if the machine's limits do not suffice.
func (s shape) agentsPerProcess(joins int) (int, error) {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return 0, fmt.Errorf("read the limit of open files: %w", err)
	}
	text, err := os.ReadFile(watchesPath)
	if err != nil {
		return 0, fmt.Errorf("read the limit of file watches: %w", err)
	}
	watches, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", watchesPath, err)
	}
	return s.split(s.nodes(joins), files.Max, watches, os.Geteuid() == 0)
}

// split returns how many of the nodes' agents one process can run, given the limits of its
// file descriptors and of its user's file watches, and whether processes can be other
// users'.
func (s shape) split(nodes int, files uint64, watches int, root bool) (int, error) {
	const (
		perAgent  = 16 // file descriptors: connections, sockets and the file watch
		perDevice = 2  // its socket, and the kubelet's connection
		perNode   = 8  // file descriptors of its kubelet, without those of devices
		others    = 10 // file watches of this program and of other programs of the user
	)
	need, byWatches := uint64(perAgent+perDevice*s.Devices), watches-others
	if kubelets := uint64(nodes * (perNode + s.Devices)); kubelets > files {
		return 0, fmt.Errorf("%v: the kubelets need %d file descriptors, and the limit is %d: "+
			"choose a smaller shape, or raise it with ulimit -n", s, kubelets, files)
	}
	most := min(int(files/need), byWatches)
	switch {
	case most >= nodes:
		return nodes, nil
	case root && most > 0:
		return most, nil
	case byWatches < nodes:
		return 0, fmt.Errorf("%v: each agent watches files, and %s is %d: "+
			"choose a smaller shape, run as root, or set sysctl fs.inotify.max_user_instances=%d", s, watchesPath, watches, nodes+others)
	default:
		return 0, fmt.Errorf("%v: the agents need %d file descriptors, and the limit is %d: "+
			"choose a smaller shape, run as root, or raise it with ulimit -n", s, uint64(nodes)*need, files)
	}
}

// check returns an error unless the Instances are exactly those of the shape, and each
// shared one names the given number of nodes.
func (s shape) check(all []unstructured.Unstructured, nodes int) error {
	if len(all) != s.instances() {
		return fmt.Errorf("not settled: %d Instances, want %d", len(all), s.instances())
	}
	if !s.Shared {
		nodes = 1
	}
	for i := range all {
		names, _, err := unstructured.NestedStringSlice(all[i].Object, "spec", "nodes")
		if err != nil {
			return fmt.Errorf("not settled: Instance %s: %w", all[i].GetName(), err)
		}
		if len(names) != nodes {
			return fmt.Errorf("not settled: Instance %s names %d nodes, want %d", all[i].GetName(), len(names), nodes)
		}
	}
	return nil
}
