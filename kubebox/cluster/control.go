package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"akri.sh/akri/kubebox/cluster/internal/node"
	"akri.sh/akri/kubebox/cluster/internal/process"
	"akri.sh/akri/kubebox/cluster/internal/supervisor"
	"akri.sh/akri/kubebox/cluster/internal/wire"
)

// Action is an operation on a component.
type Action string

// The actions. Stop sends SIGTERM, Kill sends SIGKILL. Pause and Resume are for
// programs, not for nodes.
const (
	Run     Action = "start"
	Stop    Action = "stop"
	Restart Action = "restart"
	Kill    Action = "kill"
	Pause   Action = "pause"
	Resume  Action = "resume"
)

// Status is the state of a component and, if it failed, the cause. Its Pid is the
// process ID inside the cluster.
type Status = process.Status

// Do performs an action on a component. The components are
//
//	etcd, kube-apiserver, kube-controller-manager, kube-scheduler
//	coredns                            if the cluster has nodes
//	node1                              the whole node: Kill acts like a power failure
//	node1/kubelet, node1/containerd
//	node1/kube-proxy                   if [Cluster.RoutesServices]
//
// Do returns when a stopped component has exited, or as soon as a started one is
// running; use WaitReady to wait until it is ready.
func (c *Cluster) Do(ctx context.Context, action Action, component string) error {
	socket, name := supervisor.ControlSocket(c.dir), component
	if n, program, ok := strings.Cut(component, "/"); ok {
		var err error
		if socket, err = c.socket(n); err != nil {
			return err
		}
		name = program
	}
	_, _, err := wire.Call(ctx, socket, wire.Request{Op: wire.Control, Name: name, Action: string(action)})
	if err != nil {
		return fmt.Errorf("%s %s: %w", action, component, err)
	}
	return nil
}

// Components returns the status of all components, except those of a node that is
// down.
func (c *Cluster) Components(ctx context.Context) ([]Status, error) {
	top, _, err := wire.Call(ctx, supervisor.ControlSocket(c.dir), wire.Request{Op: wire.Report})
	if err != nil {
		return nil, err
	}
	var all []Status
	for _, s := range top.Components {
		all = append(all, s)
		if s.State != process.Running || !slices.Contains(c.state.Nodes, s.Name) {
			continue
		}
		socket, err := c.socket(s.Name)
		if err != nil {
			return nil, err
		}
		below, _, err := wire.Call(ctx, socket, wire.Request{Op: wire.Report})
		if err != nil {
			continue // the node is booting, or has just exited
		}
		for _, b := range below.Components {
			b.Name = s.Name + "/" + b.Name
			all = append(all, b)
		}
	}
	return all, nil
}

// socket returns the control socket of a node, or of the control plane if name is
// empty.
func (c *Cluster) socket(name string) (string, error) {
	if name == "" {
		return supervisor.ControlSocket(c.dir), nil
	}
	if !slices.Contains(c.state.Nodes, name) {
		return "", fmt.Errorf("there is no node %q in this cluster, only %q", name, c.state.Nodes)
	}
	return node.ControlSocket(supervisor.NodeDir(c.dir, name)), nil
}
