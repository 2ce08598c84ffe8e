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
}

// parseShape parses local:DEVICESxNODES or shared:DEVICESxNODES.
func parseShape(text string) (shape, error) {
	wanted := fmt.Errorf("shape %q: want local:DEVICESxNODES or shared:DEVICESxNODES, at most %d devices and %d nodes, such as shared:100x10",
		text, maxDevices, maxNodes)
	kind, size, _ := strings.Cut(text, ":")
	if kind != "local" && kind != "shared" {
		return shape{}, wanted
	}
	devices, nodes, _ := strings.Cut(size, "x")
	s := shape{Shared: kind == "shared"}
	var err error
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
	return fmt.Sprintf("%d %s devices x %d nodes", s.Devices, kind, s.Nodes)
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

// checkLimits returns an error if the machine's limits do not suffice for the shape
// with additional nodes.
func (s shape) checkLimits(additional int) error {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return fmt.Errorf("read the limit of open files: %w", err)
	}
	text, err := os.ReadFile(watchesPath)
	if err != nil {
		return fmt.Errorf("read the limit of file watches: %w", err)
	}
	watches, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("read %s: %w", watchesPath, err)
	}
	return s.fits(additional, files.Max, watches)
}

// fits returns an error unless so many file descriptors and file watches suffice for
// the shape with additional nodes.
func (s shape) fits(additional int, files uint64, watches int) error {
	const (
		perAgent  = 16 // file descriptors: connections, sockets and the file watch
		perDevice = 2  // its socket, and the kubelet's connection
		others    = 10 // file watches of this program and of other programs of the user
	)
	nodes := s.Nodes + additional
	if need := uint64(nodes * (perAgent + perDevice*s.Devices)); need > files {
		return fmt.Errorf("%v: the agents need %d file descriptors, and the limit is %d: choose a smaller shape, or raise it with ulimit -n",
			s, need, files)
	}
	if need := nodes + others; need > watches {
		return fmt.Errorf("%v: each agent watches files, and %s is %d: choose a smaller shape, or set sysctl fs.inotify.max_user_instances=%d",
			s, watchesPath, watches, need)
	}
	return nil
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
