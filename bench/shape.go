package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxNodes bounds the number of nodes of a shape.
const maxNodes = 1000

// shape is a number of devices on a number of nodes.
type shape struct {
	Shared  bool
	Devices int // on each node
	Nodes   int
}

// parseShape parses local:DEVICESxNODES or shared:DEVICESxNODES.
func parseShape(text string) (shape, error) {
	wanted := fmt.Errorf("shape %q: want local:DEVICESxNODES or shared:DEVICESxNODES, at most %d nodes, such as shared:100x10", text, maxNodes)
	kind, size, _ := strings.Cut(text, ":")
	if kind != "local" && kind != "shared" {
		return shape{}, wanted
	}
	devices, nodes, _ := strings.Cut(size, "x")
	s := shape{Shared: kind == "shared"}
	var err error
	if s.Devices, err = strconv.Atoi(devices); err != nil || s.Devices < 1 {
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

// checkLimits returns an error if the machine's limits do not suffice for the shape
// with additional nodes.
func (s shape) checkLimits(additional int) error {
	const (
		perAgent  = 16 // file descriptors: connections, sockets and the file watch
		perDevice = 2  // its socket, and the kubelet's connection
	)
	nodes := s.Nodes + additional
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return fmt.Errorf("read the limit of open files: %w", err)
	}
	if need := uint64(nodes * (perAgent + perDevice*s.Devices)); need > files.Max {
		return fmt.Errorf("%v: the agents need %d file descriptors, and the limit is %d: choose a smaller shape, or raise it with ulimit -n",
			s, need, files.Max)
	}
	const path = "/proc/sys/fs/inotify/max_user_instances"
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the limit of file watches: %w", err)
	}
	watches, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	const others = 10 // file watches of this program and of other programs of the user
	if need := nodes + others; need > watches {
		return fmt.Errorf("%v: each agent watches files, and %s is %d: choose a smaller shape, or set sysctl fs.inotify.max_user_instances=%d",
			s, path, watches, need)
	}
	return nil
}
